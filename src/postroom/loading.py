"""Loading definition files: every language by its suffix, all files of one call or none."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from postroom.errors import ArgumentInvalid, FileUnreadable, LanguageUnknown
from postroom.limits import COLLECTION_BYTES_MAX, DESCRIPTION_BYTES_MAX
from postroom.model.schema import compile_schema
from postroom.queues import description, hierarchy
from postroom.queues import rules as queue_rules
from postroom.rules import catalog, checks, language, verification
from postroom.rules.definitions import Any_, Program, QueueDefinition
from postroom.store.base import Store
from postroom.store.transaction import Transaction

File = str | os.PathLike[str]
LANGUAGES = ".qdl (queue descriptions), .demaq (rule programs)"


@dataclass(frozen=True)
class Sources:
    """What files of definitions say, each language for itself."""

    files: tuple[str, ...]
    entries: tuple[description.Entry, ...] = ()  # of queue descriptions
    program: tuple[Any_, ...] = ()

    @property
    def count(self) -> int:
        return len(self.entries) + len(self.program)


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a load changed: queues of the description by their physical names, a program's things by what they are."""

    version: int
    added: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    status: str = field(default="00")

    def as_dict(self) -> dict[str, Any]:
        lists = {name: list(getattr(self, name)) for name in ("added", "changed", "kept", "removed")}
        return {"status": self.status, "version": self.version, **lists}


def read(files: Sequence[File]) -> Sources:
    """Read definition files and check what can be checked without a room."""
    if not files:
        raise ArgumentInvalid(argument="files", why="give at least one file")
    entries: tuple[description.Entry, ...] = ()
    program: tuple[Any_, ...] = ()
    for file in map(Path, files):
        if file.suffix == ".qdl":
            entries += description.parse(text_of(file), printable(file))
        elif file.suffix == ".demaq":
            found = language.parse(text_of(file), printable(file))
            program += tuple(_with_schema(each, file.parent) for each in found)
        else:
            raise LanguageUnknown(file=printable(file), suffix=file.suffix, known=LANGUAGES)
    if entries:
        queue_rules.check(entries)
    return Sources(tuple(printable(Path(file).name) for file in files), entries, program)


def check(store: Store | None, files: Sequence[File]) -> Sources:
    """Read and check definition files; a program is checked against the room it is for, if there is one."""
    sources = read(files)
    if sources.program:
        if store is not None:
            store.read(lambda tx: catalog.check(tx, sources.program))
        else:
            subject = checks.check(Program(sources.program), frozenset())
            verification.verify(subject)
    return sources


def load(
    store: Store, files: Sequence[File], progress: hierarchy.Progress | None = None, *, drop: bool = False
) -> Loaded:
    """Load definition files in one transaction."""
    sources = read(files)
    if not sources.entries:
        program = catalog.load(store, sources.program, sources.files, drop=drop)
        return Loaded(program.version, program.added, program.kept, program.removed, program.changed)

    def then(tx: Transaction) -> catalog.LoadedProgram | None:
        return catalog.load_within(tx, sources.program, sources.files, drop=drop) if sources.program else None

    tree, also = hierarchy.load(store, sources.entries, sources.files, progress, then)
    if also is None:
        return Loaded(tree.version, tree.added, tree.kept, tree.removed)
    return Loaded(
        also.version, tree.added + also.added, tree.kept + also.kept, tree.removed + also.removed, also.changed
    )


def documents(files: Sequence[File]) -> dict[str, str]:
    """The texts of a collection's files, by their names."""
    if not files:
        raise ArgumentInvalid(argument="files", why="give at least one file")
    found: dict[str, str] = {}
    for file in map(Path, files):
        name = printable(file.name)
        # Two files of one name are two documents.
        found[printable(file) if name in found else name] = text_of(file, COLLECTION_BYTES_MAX)
    return found


def _with_schema(definition: Any_, folder: Path) -> Any_:
    """A queue with the text of its schema: the room must not depend on a file that may change or go."""
    if not isinstance(definition, QueueDefinition) or definition.schema is None:
        return definition
    file = folder / definition.schema
    text = text_of(file)
    compile_schema(text, printable(file))
    return replace(definition, schema_text=text)


def text_of(file: Path, limit: int = DESCRIPTION_BYTES_MAX) -> str:
    """The text of a file, or a typed refusal."""
    try:
        if not file.is_file() and file.exists():
            raise FileUnreadable(file=printable(file), why="it is not a file")
        with file.open("rb") as opened:
            data = opened.read(limit + 1)
        if len(data) > limit:
            raise FileUnreadable(file=printable(file), why=f"it is larger than {limit} bytes")
        return data.decode()
    except OSError as error:
        raise FileUnreadable(file=printable(file), why=error.strerror or str(error)) from None
    except UnicodeDecodeError as error:
        raise FileUnreadable(file=printable(file), why=f"byte {error.start + 1} is not UTF-8") from None
    except ValueError as error:  # a NUL in the name
        raise FileUnreadable(file=printable(file), why=str(error)) from None


def printable(name: str | Path) -> str:
    """A file's name as text, also where the file system has bytes that are none."""
    return str(name).encode(errors="surrogateescape").decode(errors="replace")
