"""From COBOL source to an executable. Results are cached by their text, so that a program starts at once."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path

from postroom.gateways import compiler
from postroom.interfaces.cobol.precompiler import Options, precompile

LIBRARY = Path(__file__).parent / "lib"


def build(file: Path, target: Path, options: Options, standard: str | None = None) -> None:
    """Precompile and compile a program into a file."""
    text = precompile(file, options)
    _compiled(file, text, target, standard)


#: What our calls are written with, in standards that do not know it.
_WORDS = ("BINARY-LONG", "RETURNING", "OMITTED", "COMMAND-LINE")


def built(file: Path, options: Options, standard: str | None = None) -> Path:
    """Compile into the user's cache, unless it is there."""
    text = precompile(file, options)
    target = _folder() / f"{file.stem}-{_digest(text.encode(errors='surrogateescape'), (standard or '').encode())}"
    if not target.is_file():
        _once(target, lambda made: _compiled(file, text, made, standard))
    return target


def library() -> Path:
    """``libpostroom`` as an object file."""
    source = LIBRARY / "postroom.c"
    target = _folder() / f"libpostroom-{_digest(source.read_bytes(), (LIBRARY / 'postroom.h').read_bytes())}.o"
    if not target.is_file():
        _once(target, lambda made: compiler.build_library(source, made))
    return target


def _compiled(file: Path, text: str, target: Path, standard: str | None) -> None:
    with tempfile.TemporaryDirectory(prefix="postroom-") as folder:
        program = Path(folder) / f"{file.stem}.cob"
        program.write_bytes(text.encode(errors="surrogateescape"))
        options = [] if standard is None else [f"-std={standard}", *(f"-freserved={word}" for word in _WORDS)]
        compiler.build_program(program, library(), target, file, options)


def _once(target: Path, make: Callable[[Path], None]) -> None:
    """Make a file beside its place and rename it, so that concurrent builds do not interfere."""
    with tempfile.TemporaryDirectory(prefix=".making-", dir=target.parent) as folder:
        made = Path(folder) / target.name
        make(made)
        made.replace(target)


def _digest(*parts: bytes) -> str:
    digest = blake2b(digest_size=12)
    for part in parts:
        digest.update(part + b"\0")
    return digest.hexdigest()


def _folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    folder = (Path(base) if base else Path.home() / ".cache") / "postroom" / "cobol"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder
