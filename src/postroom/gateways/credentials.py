"""Secrets of an operator: read from where a setting says, checked, and never shown.

An error may quote a request, and a partner may send it back. So every text that is stored about an attempt goes through
``hidden``.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

from postroom.gateways.transport import Setting, Undelivered
from postroom.limits import GATEWAY_TOLD_CHARS_MAX, SECRET_BYTES_MAX
from postroom.model.xmltext import attribute, escaped

#: The settings that say where a secret is which is sent, or asked for.
SECRETS = ("token", "password", "secret", "in-token", "in-secret", "wss-password")
_HIDDEN = "…"
#: In a reply, shorter ones are left alone, and up to here they are hidden where they are whole words.
_REPLY_CHARS_MIN, _REPLY_WORD_CHARS_MAX = 4, 7


# --- what a secret can be ---


def line(value: str) -> None:
    """Raise ``ValueError`` unless a secret is one line. The error does not contain it."""
    if not value.isprintable() or value != value.strip():
        raise ValueError("the secret is not one line of printable characters without blanks around it")


def ascii_line(value: str) -> None:
    line(value)
    if not value.isascii():
        raise ValueError("the secret has characters that are not ASCII, which this transport cannot send")


def webhook_key(value: str) -> None:
    line(value)
    if value.startswith("whsec_"):
        try:
            known = base64.b64decode(value.removeprefix("whsec_"), validate=True)
        except ValueError:
            known = b""
        if not known:
            raise ValueError("a key that begins with whsec_ goes on in base64")


# --- where it is ---


def secret(where: str) -> str:
    """The secret that a reference points to; raises ``Undelivered`` if it is missing."""
    kind, _, name = where.partition(":")
    try:
        if kind == "env":
            value = os.environ.get(name, "")
        else:
            with Path(name).open("rb") as file:
                value = file.read(SECRET_BYTES_MAX).decode()
    except OSError as error:
        raise Undelivered(f"the secret {where} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise Undelivered(f"the secret {where} is not UTF-8") from None
    value = value.rstrip("\r\n")
    if not value:
        raise Undelivered(f"there is no secret at {where}")
    return value


def credential(settings: Mapping[str, Any], name: str, fits: Callable[[str], object]) -> str:
    """The secret of a setting in a form that can be sent; raises ``Undelivered`` with the name of the setting."""
    value = secret(settings[name])
    try:
        fits(value)
    except ValueError as error:
        raise Undelivered(f"{name}={settings[name]}: {error}") from None
    return value


def check_found(known: Iterable[Setting], settings: Mapping[str, Any]) -> None:
    """Raise ``ValueError`` if a secret exists and cannot be used; a missing one may be added later."""
    for setting in known:
        if setting.fits is not None and setting.name in settings:
            try:
                value = secret(settings[setting.name])
            except Undelivered:
                continue
            try:
                setting.fits(value)
            except ValueError as error:
                raise ValueError(f"{setting.name}: {error}") from None


# --- what is told of it ---


def hidden(text: str, settings: Mapping[str, Any]) -> str:
    """A text with the secrets of an endpoint masked, in any form in which they were sent or may come back."""
    for form in _all_forms(settings):
        text = text.replace(form, _HIDDEN)
    return text


def hidden_in_reply(body: bytes, settings: Mapping[str, Any]) -> bytes:
    """A reply that becomes a message, with secrets masked: short ones only as whole words, or not at all."""
    for form in _all_forms(settings):
        written = re.escape(form.encode(errors="replace"))
        if _REPLY_CHARS_MIN <= len(form) <= _REPLY_WORD_CHARS_MAX:
            written = rb"(?<!\w)" + written + rb"(?!\w)"
        if len(form) >= _REPLY_CHARS_MIN:
            body = re.sub(written, _HIDDEN.encode(), body)
    return body


def told(said: bytes | str, settings: Mapping[str, Any]) -> str:
    """The beginning of a partner's answer, masked, for people to read."""
    text = said.decode(errors="replace") if isinstance(said, bytes) else said
    return hidden(text, settings)[:GATEWAY_TOLD_CHARS_MAX]


def _all_forms(settings: Mapping[str, Any]) -> list[str]:
    forms: set[str] = set()
    for name in SECRETS:
        if name in settings:
            with contextlib.suppress(Undelivered):
                forms |= _forms(secret(settings[name]), str(settings.get("username", "")))
    return sorted(forms, key=len, reverse=True)


def _forms(value: str, username: str) -> set[str]:
    lines = {part.strip() for part in value.splitlines()}
    bare = {value, value.strip(), value.removeprefix("whsec_"), *lines}
    written = {
        way(text)
        for text in bare
        for way in (escaped, attribute, quote, quote_plus, lambda text: json.dumps(text)[1:-1], lambda t: repr(t)[1:-1])
    }
    packed = {
        base64.b64encode(text.encode(errors="replace")).decode().rstrip("=")
        for text in (value, f"{username}:{value}", f"\0{username}\0{value}")
    }
    return {form for form in bare | written | packed if form}
