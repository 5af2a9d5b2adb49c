"""Queues: on hold, full of errors, or locked by a process that has ended."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from shlex import quote

from postroom.diagnosis.finding import Case, Told, note, warning
from postroom.engine.blocked import blocked
from postroom.errors import NodeDown, QueueFull
from postroom.limits import ATTEMPTS_MANY, GROWING_SECONDS
from postroom.model.key import key_text
from postroom.queues.limits import check_room
from postroom.queues.tree.addressing import typed_level
from postroom.stations.places.names import database
from postroom.stations.procedures.errors import DOSSIER
from postroom.store.kernel.owner import described, is_alive
from postroom.store.kernel.policies import NO_POLICY
from postroom.store.kernel.queues import Hold
from postroom.store.kernel.transaction import Transaction


def holds(case: Case) -> Iterator[Told]:
    """Queues on hold: until the hold is released, their messages wait, and queues whose next message would go there."""
    held, obstacles = case.store.read(
        lambda tx: ([(one, typed_level(tx, one.path)) for one in tx.queues.all() if one.hold], blocked(tx).values())
    )
    for queue, level in held:
        hold = Hold(queue.hold)
        stuck = not hold.releases and queue.unprocessed
        behind = [one.queue for one in obstacles if one.goal == queue.name]
        what = f"on hold ({hold.label})" + (f", and {queue.unprocessed} message(s) wait in it" if stuck else "")
        what += f", and what waits in {', '.join(behind)} must go there first" if behind else ""
        yield (warning if stuck or behind else note)(what, queue.name, f"postroom enable {level or quote(queue.name)}")


def limits(case: Case) -> Iterator[Told]:
    """Queues that have no room for another message, and refuse it."""
    for name, why in case.store.read(_full):
        yield warning(f"it refuses messages: {why}", name, f"postroom queue policy {quote(name)} shows its limits")


def _full(tx: Transaction) -> list[tuple[str, str]]:
    """The queues that would refuse one more byte, and why."""
    limited, remarks = tx.policies.all(), []
    for queue in tx.queues.all():
        if queue.name in limited:
            try:
                check_room(tx, queue, 1, 1)
            except QueueFull as full:
                remarks.append((queue.name, full.facts["why"]))
    return remarks


def errors(case: Case) -> Iterator[Told]:
    """Unread error messages, and dead letters."""
    used = case.program().every_error_queue()
    for name, count, fresh in case.store.read(lambda tx: [_errors(tx, queue) for queue in used]):
        if count:
            what = f"{count} error message(s)"
            grows = f", {fresh} of them in the last hour: it grows" if fresh else ", none of them in the last hour"
            yield warning(what + grows, name, _again(name))
    for name, count in case.store.read(_dead_letters):
        yield warning(
            f"{count} dead letter(s): messages that have failed too often, expired or found a queue full",
            name,
            _again(name),
        )
    homes = case.network.stations()
    for node in dict.fromkeys(homes.values()):
        own = [station for station, home in homes.items() if home == node]
        try:
            counts = case.network.look(node, partial(_in_dossiers, own))  # once: a node may take long not to answer
        except NodeDown:  # another check tells
            continue
        for station, count in counts.items():
            what = f"{count} error message(s) of procedures in its dossier {DOSSIER}"
            yield warning(what, f"station {station}", f"postroom dossier show {DOSSIER} --as {quote(station)}")


def _again(name: str) -> str:
    return f"postroom peek {quote(name)}; postroom redrive {quote(name)} sends what failed again"


def _dead_letters(tx: Transaction) -> list[tuple[str, int]]:
    counts, policies = {queue.name: queue.unprocessed for queue in tx.queues.all()}, tx.policies.all()
    names = dict.fromkeys(policies.get(name, NO_POLICY).dead_letters_of(name) for name in counts)
    return [(name, counts[name]) for name in names if counts.get(name)]


def _errors(tx: Transaction, name: str) -> tuple[str, int, int]:
    queue = tx.queues.named_to_read(name)
    if queue is None or not queue.unprocessed:
        return name, 0, 0
    return name, queue.unprocessed, tx.soundness.since(queue, tx.now - int(GROWING_SECONDS * 1_000_000))


def _in_dossiers(stations: list[str], tx: Transaction) -> dict[str, int]:
    """How many errors each station has, if any."""
    queues = {station: tx.queues.named_to_read(database(station)) for station in stations}
    counts = {station: tx.dossiers.counts(queue) for station, queue in queues.items() if queue is not None}
    return {station: numbers[DOSSIER] for station, numbers in counts.items() if DOSSIER in numbers}


def locks(case: Case) -> Iterator[Told]:
    """Queues that a segmented read has locked."""
    for name, owner, actor, held in case.store.read(_locks):
        who = f"{actor} ({described(owner)})"
        if held:
            yield note(f"{who} is reading a message segment by segment; others wait", name)
        else:
            why = "has ended" if is_alive(owner) is False else "has not gone on in time"
            what = f"{who} began to read a message and {why}; the next receive begins it again"
            yield note(what, name, f"postroom receive {quote(name)}")


def _locks(tx: Transaction) -> list[tuple[str, str, str, bool]]:
    return [
        (queue.name, queue.lock_owner, queue.lock_actor or "", queue.in_use(tx.now))
        for queue in tx.queues.all()
        if queue.lock_owner is not None
    ]


def leases(case: Case) -> Iterator[Told]:
    """Leased messages, and leases that have lost their holder: consumers get those messages with their next receive."""
    for name, leased, lost in case.store.read(_leases):
        if lost:
            what = f"{lost} leased message(s) have lost their holder; the next receive gives them back, as an attempt"
            yield warning(what, name, "start a consumer again; or postroom leases, and postroom release: no attempt")
        if leased > lost:
            yield note(f"{leased - lost} message(s) are leased", name)
    for name, count, key, attempts in case.store.read(_failing):
        what = f"{count} message(s) have failed {ATTEMPTS_MANY} times or more; {key} {attempts} times"
        yield note(what, name, f"postroom trace {key} tells why; postroom queue policy {quote(name)} --attempts 5")
    for name, count in case.store.read(_tried_again):
        yield note(f"{count} message(s) have failed, and wait for their next attempt", name)


def _failing(tx: Transaction) -> list[tuple[str, int, str, int]]:
    """For each queue with messages that have failed many times: how many, and the one that did most often."""
    often: dict[int, list[tuple[int, int]]] = {}
    for id, key, failed in tx.deliveries.often(ATTEMPTS_MANY):
        often.setdefault(id, []).append((failed, key))
    remarks = []
    for queue in tx.queues.all():
        for attempts, message in [max(often[queue.id])] if queue.id in often else []:
            remarks.append((queue.name, len(often[queue.id]), key_text(message), attempts))
    return remarks


def _tried_again(tx: Transaction) -> list[tuple[str, int]]:
    """For each queue that the engine reads: how many messages wait for a retry."""
    aside = tx.deliveries.put_aside()
    return [(queue.name, aside(queue)[1]) for queue in tx.queues.all() if tx.queues.watcher(queue) and aside(queue)[1]]


def _leases(tx: Transaction) -> list[tuple[str, int, int]]:
    """For each queue with leases: how many, and how many of them have expired."""
    remarks = []
    for queue in tx.queues.all():
        every = tx.deliveries.all(queue)
        lost = [delivery for delivery in every if delivery.is_lost(tx.now)]
        if every:
            remarks.append((queue.name, len(every), len(lost)))
    return remarks
