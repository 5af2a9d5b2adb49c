"""Rule programs (.demaq) as a language of a room."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from postroom.engine.language import Load, Symbol, Terms, Trial, TrialResult
from postroom.engine.schema_process import compile_bounded
from postroom.errors import FileUnreadable, ProgramInvalid
from postroom.model.definitions import Problem, refuse
from postroom.model.paths import printable, text_of
from postroom.model.schema import gathered, renamed
from postroom.model.wsdl import Unusable, gathered_wsdl
from postroom.rules import catalog, programs
from postroom.rules.compilation import checks
from postroom.rules.compilation.ports import is_wsdl
from postroom.rules.evaluation import verification
from postroom.rules.language.definitions import AnyDefinition, LibraryDefinition, Program, QueueDefinition
from postroom.rules.language.printing import written
from postroom.rules.language.reader import EXTENSIONS, parse, parse_library
from postroom.store.kernel.base import Store
from postroom.store.kernel.transaction import Transaction


class RuleLanguage:
    suffix = ".demaq"
    others = (".xqm",)  # library modules of XQuery, which programs import
    defines = "rule programs"

    def read(self, files: Sequence[Path]) -> Modules:
        return Modules(tuple(definition for file in files for definition in _definitions(file)))

    def printed(self, tx: Transaction, version: int | None = None) -> dict[str, bytes]:
        """One file for each module, and one for each schema."""
        files: dict[str, bytes] = {}
        named: dict[str, str] = {}  # interfaces and policies by their texts: queues of one port share them
        # Declarations stand first in a file, and those of a module are printed with its name.
        for definition in sorted(programs.read(tx, version).definitions, key=lambda item: item.what != "module"):
            if isinstance(definition, LibraryDefinition):
                files[definition.file] = written(definition).encode()
                continue
            if isinstance(definition, QueueDefinition) and definition.schema_text is not None:
                schema = f"{definition.name}.xsd"
                parts = renamed(definition.schema_text, definition.name, schema)
                files |= {name: text.encode() for name, text in parts.items()}
                definition = replace(definition, schema=schema)
            if isinstance(definition, QueueDefinition):
                definition, more = _as_files(definition, named)
                files |= more
            if isinstance(definition, QueueDefinition) and definition.rule is not None:
                continue  # it comes with its rule
            module = f"{definition.module}{self.suffix}"
            files[module] = files.get(module, b"") + f"{written(definition)}\n".encode()
        return files


@dataclass(frozen=True)
class Modules:
    """The modules in the files of one load."""

    definitions: tuple[AnyDefinition, ...]

    @property
    def count(self) -> int:
        return len(self.definitions)

    def symbols(self) -> Iterator[Symbol]:
        named = (
            definition for definition in self.definitions if definition.what != "system"
        )  # that has no name of its own
        return (Symbol(definition.what, definition.name, definition.position) for definition in named)

    def check(self, store: Store | None, *, alone: bool) -> None:
        if store is not None:
            store.read(lambda tx: catalog.check(tx, self.definitions))
        else:
            verification.verify(checks.check(Program(self.definitions), frozenset()))

    def prepare(self, store: Store, terms: Terms) -> Load:
        return catalog.ModuleLoad(store, self.definitions, terms)

    def tried(self, trial: Trial) -> Iterator[TrialResult]:
        from postroom.rules import tryout  # it loads what evaluates, and a load needs none of it

        return tryout.tried(trial.store, self.definitions, trial.since)


def _definitions(file: Path) -> Iterator[AnyDefinition]:
    if file.suffix in RuleLanguage.others:
        yield parse_library(text_of(file), printable(file))
        return
    for definition in parse(text_of(file), printable(file)):
        yield _with_files(definition, file.parent) if isinstance(definition, QueueDefinition) else definition


def _with_files(queue: QueueDefinition, folder: Path) -> QueueDefinition:
    """A queue with the contents of its files. Files of unknown extensions are not read; a check reports them first."""
    if any(policy.extension not in EXTENSIONS for policy in queue.policies):
        return queue
    return _with_interface(_with_schema(queue, folder), folder)


def _with_schema(definition: QueueDefinition, folder: Path) -> QueueDefinition:
    """A queue with the text of its schema, copied because the file may change or go."""
    if definition.schema is None:
        return definition
    file = folder / definition.schema
    try:
        text = gathered(text_of(file), file.name, lambda beside: text_of(file.parent / beside))
    except FileUnreadable as error:
        refuse(ProgramInvalid, [Problem(definition.position, f"{definition.name}: {error}", "schema-read")])
    compile_bounded(text, printable(file))
    return replace(definition, schema_text=text)


def _with_interface(definition: QueueDefinition, folder: Path) -> QueueDefinition:
    """A queue with the texts of its WSDL and policies."""
    try:
        if definition.interface is not None and is_wsdl(definition.interface):
            file = folder / definition.interface
            text = gathered_wsdl(text_of(file), file.name, lambda beside: text_of(file.parent / beside))
            definition = replace(definition, interface_text=text)
        policies = tuple(
            policy if policy.file is None else replace(policy, text=text_of(folder / policy.file))
            for policy in definition.policies
        )
        return replace(definition, policies=policies)
    except (FileUnreadable, Unusable) as error:
        refuse(ProgramInvalid, [Problem(definition.position, f"{definition.name}: {error}", "interface-read")])


def _as_files(queue: QueueDefinition, named: dict[str, str]) -> tuple[QueueDefinition, dict[str, bytes]]:
    """A queue that refers to WSDL and policy files by name, and these files; equal files are shared."""
    files: dict[str, bytes] = {}
    if queue.interface_text is not None:
        name = named.setdefault(queue.interface_text, f"{queue.name}.wsdl")
        if name == f"{queue.name}.wsdl":
            files |= {file: text.encode() for file, text in renamed(queue.interface_text, queue.name, name).items()}
        queue = replace(queue, interface=name)
    policies = []
    for policy in queue.policies:
        if (text := policy.text) is not None:
            policy = replace(policy, file=named.setdefault(text, f"{queue.name}-{policy.extension}.xml"))
            files[str(policy.file)] = text.encode()
        policies.append(policy)
    return replace(queue, policies=tuple(policies)), files
