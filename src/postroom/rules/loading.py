"""Rule programs (.demaq) as a language of a room."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from postroom.engine.language import Load, Terms, Trial, TrialResult
from postroom.model.paths import printable, text_of
from postroom.model.schema import compile_schema
from postroom.rules import catalog, tryout
from postroom.rules.compilation import checks
from postroom.rules.evaluation import verification
from postroom.rules.language.definitions import AnyDefinition, Program, QueueDefinition
from postroom.rules.language.printing import written
from postroom.rules.language.reader import parse
from postroom.store.kernel.base import Store
from postroom.store.kernel.transaction import Transaction


class RuleLanguage:
    suffix = ".demaq"
    defines = "rule programs"

    def read(self, files: Sequence[Path]) -> Modules:
        return Modules(
            tuple(
                _with_schema(definition, file.parent)
                for file in files
                for definition in parse(text_of(file), printable(file))
            )
        )

    def printed(self, tx: Transaction) -> dict[str, bytes]:
        """One file for each module, and one for each schema."""
        files: dict[str, bytes] = {}
        for definition in catalog.read(tx).definitions:
            if isinstance(definition, QueueDefinition) and definition.schema_text is not None:
                schema = f"{definition.name}.xsd"
                files[schema] = definition.schema_text.encode()
                definition = replace(definition, schema=schema)
            module = f"{definition.module}{self.suffix}"
            files[module] = files.get(module, b"") + f"{written(definition)}\n".encode()
        return files


@dataclass(frozen=True)
class Modules:
    """The modules that the files of one load are."""

    definitions: tuple[AnyDefinition, ...]

    @property
    def count(self) -> int:
        return len(self.definitions)

    def check(self, store: Store | None, *, alone: bool) -> None:
        if store is not None:
            store.read(lambda tx: catalog.check(tx, self.definitions))
        else:
            verification.verify(checks.check(Program(self.definitions), frozenset()))

    def prepare(self, store: Store, terms: Terms) -> Load:
        return catalog.ModuleLoad(store, self.definitions, terms)

    def tried(self, trial: Trial) -> Iterator[TrialResult]:
        return tryout.tried(trial.store, self.definitions, trial.since)


def _with_schema(definition: AnyDefinition, folder: Path) -> AnyDefinition:
    """A queue with the text of its schema: the room must not depend on a file that may change or go."""
    if not isinstance(definition, QueueDefinition) or definition.schema is None:
        return definition
    file = folder / definition.schema
    text = text_of(file)
    compile_schema(text, printable(file))
    return replace(definition, schema_text=text)
