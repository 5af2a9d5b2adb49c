"""Loading definition files: every language by its suffix, all files of one call or none."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path

from postroom.errors import ArgumentInvalid, FileUnreadable, LanguageUnknown
from postroom.flows.graph import catalog as flow_catalog
from postroom.flows.graph import checks as checks_of_flows
from postroom.flows.graph.meta import By
from postroom.flows.graph.versions import Chart, Charts, key_of
from postroom.flows.language import reader as flow_language
from postroom.flows.language.definitions import Statement, Table
from postroom.flows.language.tables import Rows, rows_of_file
from postroom.limits import COLLECTION_BYTES_MAX, DESCRIPTION_BYTES_MAX, FLOW_BYTES_MAX
from postroom.model.definitions import Loaded
from postroom.model.paths import printable, why_unread
from postroom.model.schema import compile_schema
from postroom.queues import checks as checks_of_queues
from postroom.queues import description, hierarchy
from postroom.rules import catalog
from postroom.rules.compilation import checks, verification
from postroom.rules.evaluation.indexing import Filling
from postroom.rules.language import reader as language
from postroom.rules.language.definitions import AnyDefinition, Program, QueueDefinition
from postroom.stations import office as office_loading
from postroom.stations.forms import reader as form_language
from postroom.stations.forms.reader import Office
from postroom.store.kernel.base import Store
from postroom.store.kernel.transaction import Transaction

File = str | os.PathLike[str]
LANGUAGES = (
    ".qdl (queue descriptions), .demaq (rule programs), .flow (flow graphs), .form (types, procedures, counters)"
)


@dataclass(frozen=True)
class Sources:
    """What files of definitions say, each language for itself."""

    files: tuple[str, ...]
    entries: tuple[description.Entry, ...] = ()  # of queue descriptions
    program: tuple[AnyDefinition, ...] = ()
    flow: tuple[Statement, ...] = ()
    rows: Mapping[str, Rows] = field(default_factory=dict)  # of the flow's tables
    office: Office = field(default_factory=Office)

    @property
    def count(self) -> int:
        return len(self.entries) + len(self.program) + len(self.flow) + self.office.count


def read(files: Sequence[File]) -> Sources:
    """Read definition files and check what can be checked without a room."""
    if not files:
        raise ArgumentInvalid(argument="files", why="give at least one file")
    entries: tuple[description.Entry, ...] = ()
    program: tuple[AnyDefinition, ...] = ()
    flow: tuple[Statement, ...] = ()
    rows: dict[str, Rows] = {}
    office = Office()
    for file in map(Path, files):
        if file.suffix == ".qdl":
            entries += description.parse(text_of(file), printable(file))
        elif file.suffix == ".demaq":
            found = language.parse(text_of(file), printable(file))
            program += tuple(_with_schema(each, file.parent) for each in found)
        elif file.suffix == ".flow":
            statements = flow_language.parse(text_of(file, FLOW_BYTES_MAX), printable(file))
            rows |= _rows(statements, file.parent)
            flow += statements
        elif file.suffix == ".form":
            office = office.joined(form_language.read(text_of(file), printable(file)))
        else:
            raise LanguageUnknown(file=printable(file), suffix=file.suffix, known=LANGUAGES)
    if entries:
        checks_of_queues.check(entries)
    return Sources(tuple(printable(Path(file).name) for file in files), entries, program, flow, rows, office)


def _rows(statements: Sequence[Statement], folder: Path) -> dict[str, Rows]:
    """The rows of tables that are files: the room must not depend on a file that may change or go."""
    checks_of_flows.check_tables(statements)
    tables = [each for each in statements if isinstance(each, Table) and not each.collection]
    return {
        key_of(table): rows_of_file(table, folder / table.source, printable(folder / table.source)) for table in tables
    }


def check(store: Store | None, files: Sequence[File]) -> Sources:
    """Read and check definition files, against the room they are for if there is one."""
    sources = read(files)
    if sources.office.count:
        alone = not (sources.entries or sources.flow or sources.program)

        def check_office(tx: Transaction | None) -> None:
            office_loading.check(tx, sources.office)
            office_loading.check_counters(tx, sources.office, alone=alone)

        store.read(check_office) if store is not None else check_office(None)
    if sources.flow:
        if store is not None:
            store.read(lambda tx: flow_catalog.proposed(tx, Charts().now(tx), sources.flow, sources.rows))
        else:
            flow_catalog.proposed(None, Chart(0), sources.flow, sources.rows)
    if sources.program:
        if store is not None:
            store.read(lambda tx: catalog.check(tx, sources.program))
        else:
            subject = checks.check(Program(sources.program), frozenset())
            verification.verify(subject)
    return sources


def load(
    store: Store,
    files: Sequence[File],
    by: By,
    progress: hierarchy.Progress | None = None,
    *,
    drop: bool = False,
    proof: hierarchy.Proof | None = None,
) -> Loaded:
    """Load definition files in one transaction."""
    sources = read(files)
    filling = Filling(store)

    def then(tx: Transaction) -> Loaded | None:
        """Flows before rules: a rule may send to a space. Counters come last: they may take from any queue."""
        done = []
        tx.session.take_time()  # programs are compiled here
        if sources.office.count:
            done.append(office_loading.load_within(tx, sources.office, sources.files))
        if sources.flow:
            done.append(
                flow_catalog.load_within(tx, Charts(), sources.flow, sources.rows, sources.files, by, drop=drop)
            )
        if sources.program:
            done.append(catalog.load_within(tx, sources.program, sources.files, filling, drop=drop))
        if sources.office.count:
            done.append(office_loading.load_counters(tx, sources.office, sources.files))
        return reduce(Loaded.then, done) if done else None

    if sources.entries:
        tree, also = hierarchy.load(store, sources.entries, sources.files, progress, then, proof or hierarchy.Proof())
        return tree if also is None else tree.then(also)
    if sources.flow or sources.office.count:
        loaded = store.transact("load-flows", then) if sources.flow else store.transact("load-forms", then)
        assert loaded is not None
        return loaded
    return catalog.load(store, sources.program, sources.files, drop=drop)


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


def _with_schema(definition: AnyDefinition, folder: Path) -> AnyDefinition:
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
        raise FileUnreadable(file=printable(file), why=why_unread(file, error)) from None
    except UnicodeDecodeError as error:
        raise FileUnreadable(file=printable(file), why=f"byte {error.start + 1} is not UTF-8") from None
    except ValueError as error:  # a NUL in the name
        raise FileUnreadable(file=printable(file), why=str(error)) from None
