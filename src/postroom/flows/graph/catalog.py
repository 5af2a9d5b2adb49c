"""Flow files in the room: a load is all or nothing, replaces whole domains, and runs while events flow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from postroom.errors import CollectionUnknown, NameTaken
from postroom.flows.graph import checks
from postroom.flows.graph.by import By
from postroom.flows.graph.changes import changed, without_domains
from postroom.flows.graph.streamed import gateway_problems
from postroom.flows.graph.versions import CLIENT, Kept, RoomGraph, RoomGraphs, kept_from
from postroom.flows.language.definitions import Arc, Domain, Space, Statement, Table
from postroom.flows.language.tables import Rows, rows_of_documents
from postroom.flows.language.types import UNTYPED
from postroom.flows.language.words import fail_all
from postroom.model.definitions import Loaded, compared
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.definitions import COLLECTION


def proposed(
    tx: Transaction | None, room_graph: RoomGraph, statements: Sequence[Statement], rows: Mapping[str, Rows]
) -> dict[str, Kept]:
    """What would be kept after a load, checked in full.

    The domains of the files are replaced. What was added at run time stays: subscriptions, and changes published in a
    meta-space.
    """
    domains = {statement.name for statement in statements if isinstance(statement, Domain)}
    new = kept_from(statements, rows)
    rest = _following(without_domains(room_graph, domains), new)
    kept = {key: entry for key, entry in rest.items() if key not in new}
    checks.check(checks.typed([*(entry.statement for entry in kept.values()), *statements]))
    if tx is not None:
        problems = gateway_problems(statements, tx.endpoints.all())
        if problems:
            fail_all(problems)
    for key in new:
        if room_graph.origin(key) == CLIENT:
            raise NameTaken(name=key, owner="a client; it goes when the client unsubscribes")
    documents = (
        {} if tx is None else {master.name: master.body["documents"] for master in tx.definitions.of_kind(COLLECTION)}
    )
    for statement in statements:
        if tx is not None and isinstance(statement, Table) and statement.collection:
            if statement.source not in documents:
                raise CollectionUnknown(name=statement.source)
            rows_of_documents(statement, documents[statement.source])
    for key, entry in new.items():
        before = room_graph.kept.get(key)
        # Whoever disabled an arc did not mean until the next load.
        same = before is not None and str(before.statement) == str(entry.statement)
        kept[key] = replace(entry, disabled=before.disabled) if before is not None and same else entry
    return kept


def _following(rest: Mapping[str, Kept], new: Mapping[str, Kept]) -> dict[str, Kept]:
    """What stays; a client's space takes the new type of a space that it has subscribed to."""
    spaces = {
        entry.statement.name: entry.statement.type for entry in new.values() if isinstance(entry.statement, Space)
    }
    arcs = [entry.statement for entry in rest.values() if isinstance(entry.statement, Arc) and entry.origin == CLIENT]
    fed = {arc.target for arc in arcs if arc.source in spaces}
    statements = dict(rest)
    for key, entry in rest.items():
        space = entry.statement
        if isinstance(space, Space) and entry.origin == CLIENT and space.name in fed:
            types = {spaces[arc.source] for arc in arcs if arc.target == space.name and arc.source in spaces}
            if types != {space.type}:
                statements[key] = replace(entry, statement=replace(space, type=UNTYPED))
    return statements


def load_within(
    tx: Transaction,
    room_graphs: RoomGraphs,
    statements: Sequence[Statement],
    rows: Mapping[str, Rows],
    files: Sequence[str],
    by: By,
    *,
    drop: bool = False,
) -> Loaded:
    """Replace the domains of the files, within a transaction."""
    tx.definitions.lock()
    room_graph = room_graphs.now(tx)
    wanted = proposed(tx, room_graph, statements, rows)
    after = changed(tx, room_graph, wanted, by, {"files": list(files)}, part_with=drop)
    domains = {statement.name for statement in statements if isinstance(statement, Domain)}
    return compared(after.version, _texts(room_graph, domains), _texts(after, domains))


def _texts(room_graph: RoomGraph, domains: set[str]) -> dict[str, tuple[str, Rows]]:
    """The definitions of domains, by domain."""
    return {
        key: (str(entry.statement), entry.rows)
        for key, entry in room_graph.kept.items()
        if entry.statement.domain in domains
    }


def check_collection(room_graph: RoomGraph, name: str, documents: Sequence[str]) -> None:
    """Raise if new documents of a collection do not give valid rows to the tables that read it."""
    for table in room_graph.graph.tables.values():
        if table.collection and table.source == name:
            rows_of_documents(table, documents)
