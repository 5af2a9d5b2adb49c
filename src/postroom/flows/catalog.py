"""Flow files in the room: loaded all or nothing, domain by domain, while everything runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from postroom.errors import CollectionUnknown
from postroom.flows import checks
from postroom.flows.changes import changed, without_domains
from postroom.flows.chart import COLLECTION, Chart, Charts, Kept, Rows, kept_from
from postroom.flows.definitions import Domain, Statement, Table
from postroom.flows.meta import By
from postroom.model.catalog import Loaded, compared
from postroom.store.transaction import Transaction


def proposed(
    tx: Transaction | None, chart: Chart, statements: Sequence[Statement], rows: Mapping[str, Rows]
) -> dict[str, Kept]:
    """What would be kept after a load, checked in full.

    The domains of the files are replaced. What was added at run time stays: subscriptions, and what was published in a
    meta-space.
    """
    domains = {each.name for each in statements if isinstance(each, Domain)}
    rest = without_domains(chart, domains)
    new = kept_from(statements, rows)
    others = [each.statement for key, each in rest.items() if key not in new]
    checks.check(checks.typed([*others, *statements]))
    known = set() if tx is None else {each.name for each in tx.definitions.of_kind(COLLECTION)}
    for statement in statements:
        if tx is not None and isinstance(statement, Table) and statement.collection and statement.source not in known:
            raise CollectionUnknown(name=statement.source)
    found = {key: each for key, each in rest.items() if key not in new}
    for key, each in new.items():
        before = chart.kept.get(key)
        # Whoever disabled an arc did not mean until the next load.
        off = before is not None and before.disabled and str(before.statement) == str(each.statement)
        found[key] = replace(each, disabled=off)
    return found


def load_within(
    tx: Transaction,
    charts: Charts,
    statements: Sequence[Statement],
    rows: Mapping[str, Rows],
    files: Sequence[str],
    by: By,
    *,
    drop: bool = False,
) -> Loaded:
    """Make the domains of files what the files say, inside of a transaction."""
    tx.definitions.lock()
    chart = charts.now(tx)
    wanted = proposed(tx, chart, statements, rows)
    after = changed(tx, chart, wanted, by, {"files": list(files)}, part_with=drop)
    domains = {each.name for each in statements if isinstance(each, Domain)}
    return compared(after.version, _texts(chart, domains), _texts(after, domains))


def _texts(chart: Chart, domains: set[str]) -> dict[str, tuple[str, Rows]]:
    """What domains consist of, by name."""
    found = {}
    for key, each in chart.kept.items():
        statement = each.statement
        domain = statement.name if isinstance(statement, Domain) else statement.domain
        if domain in domains:
            found[key] = (str(statement), each.rows)
    return found
