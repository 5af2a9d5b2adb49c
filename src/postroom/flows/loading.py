"""Flow graphs (.flow) as a language of a room."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from postroom.engine.language import Load, Symbol, Terms, Trial, TrialResult
from postroom.flows.graph import catalog
from postroom.flows.graph.by import By
from postroom.flows.graph.checks import check_tables
from postroom.flows.graph.versions import FILE, RoomGraph, RoomGraphs, key_of, written
from postroom.flows.language.definitions import Allow, Statement, Table
from postroom.flows.language.reader import parse
from postroom.flows.language.tables import Rows, file_of_rows, rows_of_file
from postroom.limits import FLOW_BYTES_MAX
from postroom.model.definitions import Loaded
from postroom.model.paths import printable, text_of
from postroom.store.kernel.base import Store
from postroom.store.kernel.transaction import Transaction


class FlowLanguage:
    suffix = ".flow"
    others = ()
    defines = "flow graphs"

    def read(self, files: Sequence[Path]) -> Graphs:
        statements: list[Statement] = []
        rows: dict[str, Rows] = {}
        for file in files:
            some = parse(text_of(file, FLOW_BYTES_MAX), printable(file))
            rows |= _rows(some, file.parent)
            statements += some
        return Graphs(tuple(statements), rows)

    def printed(self, tx: Transaction, version: int | None = None) -> dict[str, bytes]:
        """One file for each domain and each table. What was added at run time is left out, because loads keep it."""
        files: dict[str, bytes] = {}
        for kept in RoomGraphs().at(tx, version or tx.definitions.version()).kept.values():
            statement = kept.statement
            if kept.origin != FILE:
                continue
            if isinstance(statement, Table) and not statement.collection:
                source = f"{statement.domain}-{statement.name}{Path(statement.source).suffix}"
                statement = replace(statement, source=source)
                files[source] = file_of_rows(statement, kept.rows)
            name = f"{statement.domain}{self.suffix}"
            files[name] = files.get(name, b"") + f"{written(statement)}\n".encode()
        return files


def _rows(statements: Sequence[Statement], folder: Path) -> dict[str, Rows]:
    """The rows of tables that are files: they are copied, because a file may change or go."""
    check_tables(statements)
    tables = [statement for statement in statements if isinstance(statement, Table) and not statement.collection]
    return {
        key_of(table): rows_of_file(table, folder / table.source, printable(folder / table.source)) for table in tables
    }


@dataclass(frozen=True)
class Graphs:
    """The domains that the files of one load describe, with the rows of their tables."""

    statements: tuple[Statement, ...]
    rows: Mapping[str, Rows]

    @property
    def count(self) -> int:
        return len(self.statements)

    def symbols(self) -> Iterator[Symbol]:
        named = (statement for statement in self.statements if not isinstance(statement, Allow))
        return (Symbol(type(statement).__name__.lower(), statement.name, statement.position) for statement in named)

    def check(self, store: Store | None, *, alone: bool) -> None:
        if store is not None:
            store.read(lambda tx: catalog.proposed(tx, RoomGraphs().now(tx), self.statements, self.rows))
        else:
            catalog.proposed(None, RoomGraph(0), self.statements, self.rows)

    def prepare(self, store: Store, terms: Terms) -> Load:
        return _GraphLoad(self, terms)

    def tried(self, trial: Trial) -> Iterator[TrialResult]:
        from postroom.flows import tryout  # it loads what evaluates, and a load needs none of it

        return tryout.tried(
            trial.store, RoomGraphs(), self.statements, self.rows, trial.since, trial.spark, trial.seconds
        )


class _GraphLoad(Load):
    def __init__(self, graphs: Graphs, terms: Terms) -> None:
        self._graphs = graphs
        self._terms = terms

    def write(self, tx: Transaction) -> Loaded:
        by = By(self._terms.principal, self._terms.broker)
        graphs, terms = self._graphs, self._terms
        return catalog.load_within(tx, RoomGraphs(), graphs.statements, graphs.rows, terms.files, by, drop=terms.drop)
