"""Decodes received bytes: by their byte order mark, the sender's charset, or the XML declaration."""

from __future__ import annotations

import codecs
import re

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # begins like the next one
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
#: Encodings that are taken, by Python's names; others of Python's are no encodings of text, or are used for attacks.
_TAKEN = frozenset(
    ["ascii", "utf-8", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"]
    + [f"iso8859-{part}" for part in range(1, 17) if part != 12]
    + [f"cp{page}" for page in range(1250, 1259)]
)
_DECLARED = re.compile(rb"""<\?xml\s[^>]*?\bencoding\s*=\s*["']([A-Za-z][A-Za-z0-9._-]*)["']""")
_OTHER = re.compile(r"""(<\?xml\s[^>]*?)\s+encoding\s*=\s*(["'])(?!utf-8\2)[^"']*\2""", re.IGNORECASE)


def charset_of(media_type: str) -> str | None:
    """The parameter ``charset`` of a media type."""
    for part in media_type.split(";")[1:]:
        name, _, value = part.partition("=")
        if name.strip().lower() == "charset":
            return value.strip().strip('"').lower()
    return None


def decoded(body: bytes, charset: str | None, *, xml: bool) -> str:
    """The text of some bytes; raises ``ValueError`` for an unsupported encoding.

    UTF-8 by default. An XML declaration of another encoding is removed, because the text is sent out as UTF-8.
    """
    name = next((name for mark, name in _MARKS if body.startswith(mark)), None)
    name = name or _known(charset or (_declared(body) if xml else None) or "utf-8", body)
    try:
        text = body.decode(name)
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start + 1} is not {name}") from None
    declaration = _OTHER.match(text) if xml else None
    return text if declaration is None else declaration[1] + text[declaration.end() :]


def _declared(body: bytes) -> str | None:
    """The encoding that a document declares, or that its first bytes show."""
    for beginning, name in ((b"<\0", "utf-16-le"), (b"\0<", "utf-16-be")):
        if body.startswith(beginning):
            return name
    declared = _DECLARED.match(body[:1000].lstrip())
    return None if declared is None else declared[1].decode("ascii")


def _known(charset: str, body: bytes) -> str:
    try:
        name = codecs.lookup(charset).name
    except (LookupError, ValueError):
        name = ""
    if name not in _TAKEN:
        raise ValueError(f"the charset {charset[:40]!r} is not taken; send UTF-8")
    # Without a mark, UTF-16 has its high bytes first, unless it shows that it has not.
    return {"utf-16": "utf-16-le" if body[1:2] == b"\0" else "utf-16-be", "utf-32": "utf-32-be"}.get(name, name)
