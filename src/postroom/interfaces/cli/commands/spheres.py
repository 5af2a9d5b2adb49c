"""Commands on spheres: spheres, sphere …, and compensate, which undoes abandoned ones."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

from postroom.errors import NotInSphere
from postroom.interfaces.cli import output
from postroom.interfaces.cli.context import Commands, KeyArgument, argument, opened, option, settings
from postroom.interfaces.cli.lasting import stop_on_signals
from postroom.model.moment import to_iso

if TYPE_CHECKING:
    from postroom.spheres.compensation import Checked
    from postroom.spheres.monitor import SendShown, SphereTold

sphere_app = Commands(help="One sphere: show, abort, settle, acknowledge.")

SphereArgument = Annotated[str, argument("ID", "The id of a sphere.")]


def spheres(
    state: Annotated[
        str | None, option("--state STATE", "Only those that are ACTIVE, COMMITTING, ABORTING, COMMITTED or ABORTED.")
    ] = None,
) -> None:
    """List the spheres, and who owns them.

    Shows since when, how much they have sent, and why they failed.

    \b
    Examples:
      postroom spheres
      postroom spheres --state ABORTING
    """
    with opened() as it:
        shown = [sphere.as_dict() for sphere in it.spheres.all(None if state is None else state.upper())]
    if settings.json:
        output.as_json({"spheres": shown})
    elif shown:
        names = ["id", "state", "owner", "started", "send_count", "reason"]
        headings = ["sphere", "state", "owner", "started", "sends", "reason"]
        output.table(headings, [[sphere[name] for name in names] for sphere in shown])
    else:
        output.note("no sphere" if state is None else f"no sphere is {state.upper()}")


@sphere_app.command("show")
def sphere_show(id: SphereArgument) -> None:
    """Show a sphere: its token, its conditions, its participants, and the outcome of each send.

    An outcome is open while the sphere is active, and parked, with the reason, if a compensation waits for its queue.

    \b
    Example:
      postroom sphere show order-17
    """
    with opened() as it:
        told = it.spheres.show(id)
    output.as_json(told.as_dict()) if settings.json else _say(told)


def _say(told: SphereTold) -> None:
    """Print all about a sphere."""
    sphere = told.sphere
    output.say(f"sphere {sphere.id} is {sphere.state}" + (f": {sphere.reason}" if sphere.reason else ""))
    output.say(f"  owner {sphere.owner}, started {to_iso(sphere.started)}, token {told.token}")
    for requirement in told.requires:
        output.say(f"  requires {requirement}")
    for key, who, done in told.parts:
        output.say(f"  {who} takes part by {key}: {'done' if done else 'not done'}")
    receives = [send for send in told.sends if send.is_receive]
    if receives:
        output.table(["received from", "key", "received", "outcome"], [_receive_cells(send) for send in receives])
    sends = [send for send in told.sends if not send.is_receive]
    if sends:
        headings = ["when", "to", "key", "compensation", "for", "received", "processed at", "outcome"]
        output.table(headings, [_cells(send) for send in sends])
    for line in _noted(told):
        output.say(f"  {line}")


def _noted(told: SphereTold) -> list[str]:
    """What is parked, what has no compensation, and who is in doubt."""
    notes = [
        f"{send.remembered} is parked: {send.why}" if send.outcome == "parked" else f"{send.key} stays: {send.why}"
        for send in told.sends
        if send.why is not None
    ]
    return notes + [f"in doubt: {place}; end it with: postroom sphere settle URL" for place in told.in_doubt]


def _receive_cells(receive: SendShown) -> list[str | None]:
    at = None if receive.received is None else to_iso(receive.received)
    return [receive.recipient, receive.key, at, "reserved" if receive.outcome == "open" else receive.outcome]


def _cells(send: SendShown) -> list[str | None]:
    moments = [None if moment is None else to_iso(moment) for moment in (send.received, send.processed)]
    undo, target = (send.remembered, send.target) if send.when == "now" else (None, None)
    return [send.when, send.recipient, send.key or send.remembered, undo, target, *moments, send.outcome]


@sphere_app.command("abort")
def sphere_abort(
    id: SphereArgument,
    reason: Annotated[
        str, option("--reason TEXT", "The reason, shown to its owner and others.", show_default=True)
    ] = "an operator aborted it",
) -> None:
    """Abort a sphere: its messages are withdrawn or compensated.

    It stays ABORTING while a compensation waits for its queue.

    \b
    Example:
      postroom sphere abort order-17 --reason "the customer has left"
    """
    with opened() as it:
        state = it.spheres.abort(id, reason)
        told = it.spheres.show(id)
    if settings.json:
        output.as_json({"sphere": id, "state": state})
        return
    output.say(f"{id} is {state}")
    for line in _noted(told):
        output.note(line)


@sphere_app.command("settle")
def sphere_settle(
    url: Annotated[str, argument("URL", "A PostgreSQL database that spheres have enlisted.")],
) -> None:
    """Resolve prepared transactions of spheres that are in doubt in a database.

    Transactions of committed spheres are committed, those of aborted spheres rolled back. Those that are undecided or
    not of this room are left alone. For other databases call room.spheres.settle(connection) in a program.

    \b
    Example:
      postroom sphere settle postgresql://bank.example/accounts
    """
    with opened() as it:
        settled = it.spheres.settle_database(url)
    if settings.json:
        output.as_json({"settled": settled})
    elif settled:
        for sphere, became in settled.items():
            output.say(f"{sphere}: {became}")
    else:
        output.note("nothing is in doubt there")


@sphere_app.command("watch")
def sphere_watch(
    state: Annotated[str, argument("STATE", "A state such as ABORTED.")],
    queue: Annotated[list[str], argument("QUEUE", "The queue that gets the messages.")],
    stop: Annotated[bool, option("--stop", "Stop these messages.")] = False,
) -> None:
    """Send a message to a queue for each arrival in a state.

    The engine puts a message into the queue for each arrival: the entity, its state, the one before, the reason.
    To look at a state without a queue: postroom receive STATE --follow

    \b
    Examples:
      postroom sphere watch ABORTED complaints
      postroom sphere watch ABORTED complaints --stop
    """
    with opened() as it:
        it.spheres.watch_state(state, *queue, stop=stop)
    shape = {"state": state, "queue": "/".join(queue), "is_watched": not stop}
    words = "gets no more messages about" if stop else "gets a message for each arrival in"
    output.answer(shape, f"{shape['queue']} {words} {state}")


@sphere_app.command("acknowledge")
def sphere_acknowledge(
    key: KeyArgument,
    processed: Annotated[bool, option("--processed", "It was also processed.")] = False,
) -> None:
    """Acknowledge for a recipient that a message of a sphere was received, or processed.

    \b
    Examples:
      postroom sphere acknowledge 00001.00042
      postroom sphere acknowledge 00001.00042 --processed
    """
    with opened() as it:
        if not it.acknowledge(key, processed=processed):
            raise NotInSphere(key=key)
    word = "processed" if processed else "received"
    output.answer({"key": key, "said": word, "is_changed": True}, f"{key} was {word}")


def compensate(
    once: Annotated[bool, option("--once", "Check once, and stop.")] = False,
    check: Annotated[
        float | None,
        option(
            "--check SECONDS", "Check interval; longer than the slowest heartbeat. Default: as the last engine, else 5."
        ),
    ] = None,
) -> None:
    """Undo spheres whose owner has ended, until stopped.

    An owner whose heartbeat has not changed in two checks an interval apart has ended; its spheres are aborted, and
    their messages are withdrawn or compensated. Parked compensations are retried. Several engines may run, and postroom
    run is one of them. SIGTERM or Ctrl-C finishes the current check and stops.

    \b
    Examples:
      postroom compensate
      postroom compensate --check 10
      postroom compensate --once
    """
    with opened() as it:
        engine = it.spheres.compensator(check)
        stop_on_signals(engine.stop, "work")
        if not once and not settings.json and sys.stderr.isatty():
            output.note("running; Ctrl-C stops")
        checked = engine.once() if once else engine.run()
    _finish(checked)


def _finish(checked: Checked) -> None:
    if settings.json:
        output.as_json(checked.as_dict())
        return
    output.say(
        f"{checked.spheres} sphere(s) at the last check, {checked.aborted} aborted, {checked.compensated} compensated"
    )
    if checked.parked:
        output.note(
            f"{checked.parked} wait(s) for a queue that takes nothing now: see postroom spheres --state ABORTING"
        )
