"""Where a message may go: origins that the operator listed, at addresses that were resolved once and checked.

Names are compared literally, so no other spelling of an address is accepted. The connection goes to the checked
address: the name is not resolved again.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import NamedTuple
from urllib.parse import urljoin, urlsplit

from postroom.gateways.transport import Undelivered

PORTS = {"http": 80, "https": 443, "smtp": 25, "smtps": 465}
Address = IPv4Address | IPv6Address
#: Addresses of a name, in the order of preference.
Resolver = Callable[[str, int], list[str]]


class Origin(NamedTuple):
    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


def origin_of(url: str) -> Origin:
    """Scheme, host and port of a URL; raises ``ValueError`` unless messages may be sent there."""
    if not url.isascii() or not url.isprintable() or " " in url or "\\" in url:
        raise ValueError("an address is a URL in printable ASCII characters")
    parts = urlsplit(url)
    if parts.scheme not in PORTS:
        raise ValueError(f"an address begins with one of {', '.join(PORTS)}")
    if parts.username is not None or parts.password is not None or not parts.hostname or parts.fragment:
        raise ValueError("an address has a host, and neither a user nor a password nor a fragment")
    try:
        port = parts.port
    except ValueError:
        raise ValueError("the port of an address is a number up to 65535") from None
    return Origin(parts.scheme, parts.hostname.lower(), port or PORTS[parts.scheme])


def target_of(address: str, recipient: object, allowed: list[str]) -> str:
    """The URL for a message: the endpoint's address, or its property ``recipient`` if that is on the list."""
    if recipient is None:
        return address
    if not isinstance(recipient, str):
        raise Undelivered("the property recipient is no address", final=True)
    try:
        url = urljoin(address, recipient)
        origin = origin_of(url)
    except ValueError as error:
        raise Undelivered(f"the property recipient is no address: {error}", final=True) from None
    if origin not in {origin_of(permitted) for permitted in (address, *allowed)}:
        raise Undelivered(f"{origin} is not on the gateway's list of origins", final=True)
    return url


def system_resolver(host: str, port: int) -> list[str]:
    addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(info[4][0]) for info in addresses]


def literal(host: str) -> Address | None:
    """The IP address, if the host is written as one."""
    try:
        return ip_address(host)
    except ValueError:
        return None


def pinned(host: str, port: int, *, private: bool, resolver: Resolver | None = None) -> str:
    """The address to connect to. One in a private network needs ``private``, or must be written as an IP address."""
    written = literal(host)
    if written is not None:
        return str(written)
    try:
        addresses = (resolver or system_resolver)(host, port)
    except (OSError, UnicodeError) as error:
        raise Undelivered(f"the name {host} leads nowhere: {error}", disconnected=f"{host}:{port}") from None
    for address in addresses:
        if private or is_public(ip_address(address.partition("%")[0])):
            return address
    why = f"the name {host} leads to {', '.join(addresses) or 'nothing'}, inside of a network; private=yes allows that"
    raise Undelivered(why, disconnected=f"{host}:{port}")


#: Where routers may translate to IPv4, and what was once used inside of sites; Python calls some of them global.
_INSIDE = [ip_network(text) for text in ("64:ff9b::/96", "64:ff9b:1::/48", "::/96", "fec0::/10", "192.0.0.0/24")]


def is_public(address: Address) -> bool:
    if any(address in network for network in _INSIDE):
        return False
    mapped = getattr(address, "ipv4_mapped", None) or getattr(address, "sixtofour", None)
    return address.is_global and not address.is_multicast and (mapped is None or is_public(mapped))
