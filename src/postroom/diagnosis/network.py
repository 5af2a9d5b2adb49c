"""The network: nodes that do not respond, and messages stuck between two stores."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from postroom.diagnosis.finding import Case, Told, ok, warning, wrong
from postroom.errors import NodeDown
from postroom.limits import OVERDUE_SECONDS
from postroom.model.key import key_text
from postroom.model.moment import to_datetime, to_iso
from postroom.stations.places.desk import GET
from postroom.store.kernel.transaction import Transaction
from postroom.store.kernel.transfers import Parcel


def nodes(case: Case) -> Iterator[Told]:
    """Whether every node responds."""
    shown = case.network.shown()
    for node in shown:
        if not node.answers:
            help = f"let its store answer; if it has moved: postroom node move {quote(node.name)} URL"
            yield wrong(f"it does not answer: {node.why}; {node.stations} station(s) are on it", node.name, help)
    if all(node.answers for node in shown) and len(shown) > 1:
        yield ok(f"all {len(shown)} nodes answer")


def handovers(case: Case) -> Iterator[Told]:
    """Messages that have left one store without a confirmation from the other; the next transfer finishes them."""
    for node in case.network.nodes():
        try:
            stuck = case.network.look(node, _stuck)
        except NodeDown:  # another check tells
            continue
        for parcel, since in stuck:
            station = parcel.target if parcel.verb == GET else parcel.source
            what = f"message {key_text(parcel.stored.key)} left for {parcel.target} at {since} and has not arrived"
            yield warning(what, f"node {node}", f"postroom get --as {quote(station)}")


def _stuck(tx: Transaction) -> list[tuple[Parcel, str]]:
    transfers = [(parcel, tx.journal.time_of(parcel.stored.position) or 0) for parcel in tx.transfers.pending()]
    old = tx.now - OVERDUE_SECONDS * 1_000_000
    return [(parcel, to_iso(to_datetime(at))) for parcel, at in transfers if at < old]
