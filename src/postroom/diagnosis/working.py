"""The engine and the senders: whether they run, what waits for them, and stuck effects."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from postroom.diagnosis.finding import Case, Told, ok, warning
from postroom.engine.holding import engines
from postroom.engine.presence import EngineState, Presence, presence, senders
from postroom.limits import OVERDUE_SECONDS, WAITED_SECONDS
from postroom.model.moment import in_microseconds, to_datetime, to_iso
from postroom.store.kernel.outbox import Effect
from postroom.store.kernel.transaction import Transaction

RUN = "postroom run"
SEND = "postroom run --senders"


def engine(case: Case) -> Iterator[Told]:
    """Which process has the engine's lease, and which one sends if it is another."""
    seen, apart = case.store.read(lambda tx: (presence(tx), senders(tx)))
    if seen.state is EngineState.RUNS:
        yield ok(f"{seen.owner} runs it, under number {seen.number}")
        sharing = case.store.read(engines)
        for peer in sharing if len(sharing) > 1 else ():
            yield ok(str(peer))
    yield from _left(seen, "engine", f"the engine ({seen.owner})", "", RUN)
    if apart.state is EngineState.RUNS:
        yield ok(f"{apart.owner} sends, under number {apart.number}")
    instead = "; the engine sends" if seen.works else "; nobody sends"
    yield from _left(apart, "senders", f"the senders' process ({apart.owner})", instead, SEND)


def _left(seen: Presence, lease: str, who: str, instead: str, command: str) -> Iterator[Told]:
    """A finding if a lease was neither released nor renewed in time."""
    if seen.state is EngineState.ENDED:
        yield warning(f"{who} has ended without releasing its lease{instead}", f"lease {lease}", command)
    elif seen.state is EngineState.SILENT:
        until = to_iso(to_datetime(seen.until))
        what = f"{who} should have renewed its lease before {until}: it hangs, or has ended{instead}"
        yield warning(what, f"lease {lease}", f"end that process if it is there; then: {command}")


def waiting(case: Case) -> Iterator[Told]:
    """Messages that no engine works on, and schedules that are overdue."""
    lags, watched = case.lags(), frozenset(case.program().watched)
    lag = sum(lags.values())
    by = ", ".join(f"{count} for {name}" for name, count in lags.items() if count)
    works, late, due = case.store.read(lambda tx: (presence(tx).works, _late(tx, watched), _due(tx)))
    for name, since in case.store.read(_unsent):
        what = f"its message should have been sent at {since}"
        yield warning(what, f"schedule {name}", f"{RUN}, or postroom work; if one runs, look at the queue it sends to")
    if lag and not works:
        yield warning(f"{lag} message(s) wait, and no engine runs: {by}", "", RUN)
    elif lag:
        yield ok(f"{lag} message(s) wait for the engine: {by}")
    if due and not works:
        yield warning("a message in an echo queue is due, and no engine runs", "", RUN)
    for name, since in late if works else ():
        what = f"its next message has waited since {since}, though the engine runs"
        yield warning(what, name, f"postroom peek {quote(name)} --limit 1; postroom doctor shows what is on hold")


def _late(tx: Transaction, watched: frozenset[str]) -> list[tuple[str, str]]:
    late = []
    for queue in tx.queues.all():
        head = tx.messages.head(queue) if queue.name in watched and queue.releases else None
        came = None if head is None else tx.journal.time_of(head.position)
        if came is not None and came < tx.now - WAITED_SECONDS * 1_000_000:
            late.append((queue.name, to_iso(to_datetime(came))))
    return late


def _unsent(tx: Transaction) -> list[tuple[str, str]]:
    """Schedules that no process fired in time, or whose queue takes nothing."""
    overdue = tx.schedules.due(tx.now - in_microseconds(OVERDUE_SECONDS))
    return [(schedule.name, to_iso(to_datetime(schedule.due))) for schedule in overdue]


def _due(tx: Transaction) -> bool:
    due = tx.timers.next_due()
    return due is not None and due < tx.now - OVERDUE_SECONDS * 1_000_000


def outbox(case: Case) -> Iterator[Told]:
    """Effects that failed, or that no process tries."""
    effects, now, does = case.store.read(lambda tx: (tx.outbox.all(), tx.now, _who_does(tx)))
    for effect in effects:
        told = f"effect {effect.id} ({_told(effect)})"
        if effect.state == "failed":
            what = f"{told} failed {effect.attempts} time(s): {effect.note}"
            yield warning(what, "outbox", f"postroom outbox retry {effect.id}, or: postroom outbox drop {effect.id}")
        elif effect.due < now - OVERDUE_SECONDS * 1_000_000:
            what = f"{told} is due since {to_iso(to_datetime(effect.due))}"
            yield warning(f"{what}, {does}", "outbox", RUN)


def _who_does(tx: Transaction) -> str:
    """The process that should have tried an overdue effect."""
    apart = senders(tx)
    if apart.works:
        return f"though {apart.owner} sends"
    return "though the engine runs" if presence(tx).works else "and no engine runs"


def _told(effect: Effect) -> str:
    return f"{effect.payload.get('command', effect.kind)} for {effect.payload.get('queue', '')}"
