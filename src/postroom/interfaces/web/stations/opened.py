"""What a form said when its page was opened, so that a save writes only what its user has changed since."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b

#: Before the name of a field whose text, as the page had it, is sent back as a digest.
WAS = "was:"


def digest(text: str) -> str:
    """A digest of a text as a browser sends it back: with one sign for the end of a line.

    >>> digest("a\\r\\nb") == digest("a\\nb"), digest("a") == digest("b")
    (True, False)
    """
    return blake2b(plain(text).encode(errors="backslashreplace"), digest_size=8).hexdigest()


def plain(text: str) -> str:
    """A text with the ends of lines that a browser gives it."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def opened(said: Sequence[tuple[str, str]]) -> dict[str, str]:
    """By field, the digest of what the page had."""
    return {name.removeprefix(WAS): value for name, value in said if name.startswith(WAS)}


def written(texts: Mapping[str, str], stored: Mapping[str, str], was: Mapping[str, str]) -> dict[str, str]:
    """The texts that a user has changed: others than the page had, and than what is stored now."""
    return {
        name: text for name, text in texts.items() if digest(text) not in (was.get(name), digest(stored.get(name, "")))
    }


def overtaken(mine: Mapping[str, str], stored: Mapping[str, str], was: Mapping[str, str]) -> dict[str, str]:
    """Of the fields that a user has changed, those that someone else has changed, too: what they say now."""
    return {name: stored.get(name, "") for name in mine if was.get(name) != digest(stored.get(name, ""))}
