"""Files that users name: printable names, contents, and errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from postroom.errors import FileUnreadable
from postroom.limits import DESCRIPTION_BYTES_MAX


def printable(name: str | Path) -> str:
    """A file's name as text, also if it has invalid bytes."""
    try:
        return str(name).encode(errors="surrogateescape").decode(errors="replace")
    except UnicodeEncodeError:  # a half of a surrogate pair that is no byte of a file's name
        return str(name).encode(errors="replace").decode()


def why_unread(file: str | Path, error: OSError) -> str:
    """Why a file cannot be read; for a missing relative path also the folder."""
    why = error.strerror or str(error)
    if isinstance(error, FileNotFoundError) and not Path(file).is_absolute():
        return f"{why} (looked for from the working directory)"
    return why


#: Texts by the names of files, for whoever is not at this machine.
_sent: ContextVar[Mapping[str, str] | None] = ContextVar("postroom_sent", default=None)


@contextmanager
def reading_only(texts: Mapping[str, str]) -> Iterator[None]:
    """In this block these texts are the only files; no file of this machine is read."""
    before = _sent.set(texts)
    try:
        yield
    finally:
        _sent.reset(before)


def sent_text(file: Path) -> str | None:
    """The text sent for a file; None outside of ``reading_only``."""
    texts = _sent.get()
    if texts is None:
        return None
    if file.as_posix() not in texts:
        raise FileUnreadable(file=printable(file), why="it was not sent along")
    return texts[file.as_posix()]


def text_of(file: Path, limit: int = DESCRIPTION_BYTES_MAX) -> str:
    """The text of a file; raises a typed error."""
    sent = sent_text(file)
    if sent is not None:
        if len(sent.encode()) > limit:
            raise FileUnreadable(file=printable(file), why=f"it is larger than {limit} bytes")
        return sent
    try:
        if not file.is_file() and file.exists():
            raise FileUnreadable(file=printable(file), why="it is not a file")
        with file.open("rb") as opened:
            data = opened.read(limit + 1)
        if len(data) > limit:
            raise FileUnreadable(file=printable(file), why=f"it is larger than {limit} bytes")
        return data.decode()
    except OSError as error:
        raise FileUnreadable(file=printable(file), why=why_unread(file, error)) from None
    except UnicodeDecodeError as error:
        raise FileUnreadable(file=printable(file), why=f"byte {error.start + 1} is not UTF-8") from None
    except ValueError as error:  # a NUL in the name
        raise FileUnreadable(file=printable(file), why=str(error)) from None
