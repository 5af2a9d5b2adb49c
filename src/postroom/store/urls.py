"""The URLs of databases: what may be shown or stored, and the passwords of nodes.

The URL of a node is stored without secrets. Its password comes from where PostgreSQL's own programs look (a password
file, ``PGPASSWORD``, a service), or from a variable of the node's name.
"""

from __future__ import annotations

import os
import re
from typing import NamedTuple

_SECRET_PARAMETER = re.compile(r"password|secret|token", re.IGNORECASE)
_HOST = re.compile(r"(?:\[[0-9A-Fa-f:.]*\]|[^:\[\]]*)(?::\d{1,5}$)?")
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")


class Parted(NamedTuple):
    """A URL without its secrets, and these by parameter name."""

    url: str
    secrets: dict[str, str]


def parted(url: str) -> Parted:
    """Take the secrets out of a database's URL.

    >>> parted("postgresql://ann:s%33cret@host:5/db?sslmode=require&sslpassword=x")
    Parted(url='postgresql://ann@host:5/db?sslmode=require', secrets={'password': 's3cret', 'sslpassword': 'x'})
    """
    scheme, _, rest = url.partition("://")
    at = re.search(r"[@/?#]", rest)  # as libpq looks for it: the first @, if it comes before a path
    secrets: dict[str, str] = {}
    if at is not None and at.group() == "@":
        user, colon, password = rest[: at.start()].partition(":")
        if password:
            secrets["password"] = _unescaped(password)
        rest = (user if password else user + colon) + rest[at.start() :]
    place, mark, parameters = rest.partition("?")
    kept = []
    for parameter in parameters.split("&") if mark else []:
        name, _, value = parameter.partition("=")
        if _SECRET_PARAMETER.search(_unescaped(name)):
            if value:
                secrets[_unescaped(name)] = _unescaped(value)
        else:
            kept.append(parameter)
    return Parted(f"{scheme}://{place}{'?' if kept else ''}{'&'.join(kept)}", secrets)


def public_url(url: str) -> str:
    """A URL for display, even if malformed: without the password and parameters, which may contain one."""
    scheme, _, rest = url.partition("://")
    if "@" in rest.partition("?")[2]:  # of a password that was not escaped, or of a parameter
        return f"{scheme}://{re.split('[:/?#@]', rest)[0]}…"
    login, at, host = rest.rpartition("@")
    user = re.split(r"[:/?#]", login)[0]
    hosts, slash, name = re.split(r"[?#]", host)[0].partition("/")
    # What stands for a port and is none may be the password of someone who forgot a part of the URL.
    places = [match[0] for place in hosts.split(",") if (match := _HOST.match(place))]
    return f"{scheme}://{user}{at}{','.join(places)}{slash}{name}"


def pieces(url: str) -> list[str]:
    """Every part of a URL that may contain a secret, however it is parsed."""
    login = url.partition("://")[2].rpartition("@")[0].partition(":")[2]
    secrets = {*parted(url).secrets.values(), login, *re.split(r"[@:/?#&=]", login)}
    return [text for secret in secrets if len(secret) > 2 for text in {secret, _unescaped(secret)}]


def variable(node: str) -> str:
    """The environment variable for a node's password."""
    return f"POSTROOM_NODE_{node}_PASSWORD"


def with_password(node: str, url: str) -> str:
    """The URL of a node with its password from the environment; without one PostgreSQL looks for it."""
    password = os.environ.get(variable(node))
    if not password or not url.startswith(("postgresql://", "postgres://")):
        return url
    escaped = "".join(f"%{byte:02X}" for byte in password.encode(errors="surrogateescape"))
    return f"{url}{'&' if '?' in url else '?'}password={escaped}"


def _unescaped(text: str) -> str:
    letters = text.encode(errors="surrogateescape").decode("latin-1")
    plain = _ESCAPE.sub(lambda escape: chr(int(escape[1], 16)), letters)
    return plain.encode("latin-1").decode(errors="surrogateescape")
