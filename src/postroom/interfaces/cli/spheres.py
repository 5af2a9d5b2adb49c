"""Commands on spheres: spheres, sphere …, and compensate, which runs the detached engine."""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from postroom.errors import NotInSphere
from postroom.interfaces.cli import output
from postroom.interfaces.cli.context import Commands, KeyArgument, opened, settings
from postroom.model.moment import to_iso

if TYPE_CHECKING:
    from types import FrameType

    from postroom.spheres.compensation import Checked
    from postroom.spheres.monitor import SendShown, SphereTold

sphere_app = Commands(help="Look at a sphere, end it, speak for a recipient.")

SphereArgument = Annotated[str, typer.Argument(metavar="ID", help="The id of a sphere.", show_default=False)]


def spheres(
    state: Annotated[
        str | None,
        typer.Option(
            "--state",
            metavar="STATE",
            help="Only those that are ACTIVE, COMMITTING, ABORTING, COMMITTED or ABORTED.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """List the spheres, and who owns them.

    Since when, how much they have sent, and why they failed.

    \b
    Examples:
      postroom spheres
      postroom spheres --state ABORTING
    """
    with opened() as it:
        found = [each.as_dict() for each in it.spheres(None if state is None else state.upper())]
    if settings.json:
        output.as_json({"spheres": found})
    elif found:
        names = ["id", "state", "owner", "started", "send_count", "reason"]
        headings = ["sphere", "state", "owner", "started", "sends", "reason"]
        output.table(headings, [[each[name] for name in names] for each in found])
    else:
        output.note("no sphere" if state is None else f"no sphere is {state.upper()}")


@sphere_app.command("show")
def sphere_show(id: SphereArgument) -> None:
    """Show all about a sphere: its token, what it requires, who takes part, and what became of each send.

    An outcome is open while the sphere is, and parked if a compensation waits for its queue; then it says why.

    \b
    Example:
      postroom sphere show order-17
    """
    with opened() as it:
        told = it.show_sphere(id)
    output.as_json(told.as_dict()) if settings.json else _say(told)


def _say(told: SphereTold) -> None:
    """All about a sphere, for a person."""
    sphere = told.sphere
    output.say(f"sphere {sphere.id} is {sphere.state}" + (f": {sphere.reason}" if sphere.reason else ""))
    output.say(f"  owner {sphere.owner}, started {to_iso(sphere.started)}, token {told.token}")
    for requirement in told.requires:
        output.say(f"  requires {requirement}")
    for key, who, done in told.parts:
        output.say(f"  {who} takes part by {key}: {'done' if done else 'not done'}")
    if told.sends:
        headings = ["when", "to", "key", "compensation", "for", "received", "processed", "outcome"]
        output.table(headings, [_cells(send) for send in told.sends])
    for line in _noted(told):
        output.say(f"  {line}")


def _noted(told: SphereTold) -> list[str]:
    """What is parked, what nothing undoes, and who is in doubt."""
    said = [
        f"{send.remembered} is parked: {send.why}" if send.outcome == "parked" else f"{send.key} stays: {send.why}"
        for send in told.sends
        if send.why is not None
    ]
    return said + [f"in doubt: {each}; end it with: postroom sphere settle URL" for each in told.in_doubt]


def _cells(send: SendShown) -> list[str | None]:
    said = [None if moment is None else to_iso(moment) for moment in (send.received, send.processed)]
    undo, target = (send.remembered, send.target) if send.when == "now" else (None, None)
    return [send.when, send.recipient, send.key or send.remembered, undo, target, *said, send.outcome]


@sphere_app.command("abort")
def sphere_abort(
    id: SphereArgument,
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", help="Why: its owner is told, and so is everyone who looks.")
    ] = "an operator aborted it",
) -> None:
    """Let a sphere fail: what it has sent is withdrawn or compensated.

    It stays ABORTING while a compensation waits for its queue.

    \b
    Example:
      postroom sphere abort order-17 --reason "the customer has left"
    """
    with opened() as it:
        state = it.abort_sphere(id, reason)
        told = it.show_sphere(id)
    if settings.json:
        output.as_json({"status": "00", "sphere": id, "state": state})
        return
    output.say(f"{id} is {state}")
    for line in _noted(told):
        output.note(line)


@sphere_app.command("settle")
def sphere_settle(
    url: Annotated[
        str,
        typer.Argument(metavar="URL", help="Of a PostgreSQL database that spheres have enlisted.", show_default=False),
    ],
) -> None:
    """End what a database has prepared for spheres and heard no more of, as their tokens say.

    What belongs to a committed sphere is committed, to an aborted one, rolled back. What is undecided or not of this
    room is left alone. A program that uses another database says room.settle(connection).

    \b
    Example:
      postroom sphere settle postgresql://bank.example/accounts
    """
    with opened() as it:
        settled = it.settle_database(url)
    if settings.json:
        output.as_json({"status": "00", "settled": settled})
    elif settled:
        for sphere, became in settled.items():
            output.say(f"{sphere}: {became}")
    else:
        output.note("nothing is in doubt there")


@sphere_app.command("watch")
def sphere_watch(
    state: Annotated[str, typer.Argument(metavar="STATE", help="Such as ABORTED.", show_default=False)],
    queue: Annotated[list[str], typer.Argument(metavar="QUEUE", help="That is told.", show_default=False)],
    stop: Annotated[bool, typer.Option("--stop", help="Tell it no more.")] = False,
) -> None:
    """Let a queue be told what comes into a state, for rules, arcs and recipients.

    The engine puts a message into the queue for each arrival: the entity, its state, the one before, the reason.
    To look at a state without a queue: postroom receive STATE --follow

    \b
    Examples:
      postroom sphere watch ABORTED complaints
      postroom sphere watch ABORTED complaints --stop
    """
    with opened() as it:
        it.watch_state(state, *queue, stop=stop)
    said = {"status": "00", "state": state, "queue": "/".join(queue), "told": not stop}
    words = f"{said['queue']} is told no more of {state}" if stop else f"{said['queue']} is told of {state}"
    output.as_json(said) if settings.json else output.say(words)


@sphere_app.command("acknowledge")
def sphere_acknowledge(
    key: KeyArgument,
    processed: Annotated[bool, typer.Option("--processed", help="What it asked for is done, too.")] = False,
) -> None:
    """Say for the recipient of a message that it was received, or processed: a sphere may wait for that.

    \b
    Examples:
      postroom sphere acknowledge 00001.00042
      postroom sphere acknowledge 00001.00042 --processed
    """
    with opened() as it:
        if not it.acknowledge(key, processed=processed):
            raise NotInSphere(key=key)
    said = "processed" if processed else "received"
    output.as_json({"status": "00", "key": key, "said": said}) if settings.json else output.say(f"{key} was {said}")


def compensate(
    once: Annotated[bool, typer.Option("--once", help="Check once, and stop.")] = False,
    check: Annotated[
        float | None,
        typer.Option(
            "--check",
            metavar="SECONDS",
            help="Look this often; more than the slowest heartbeat. Default: as the last engine, else 5.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Undo spheres whose owner has ended, until stopped.

    An owner whose heartbeat has not changed in two looks an interval apart has ended; its spheres are aborted, and what
    they sent is withdrawn or compensated. Compensations that wait for their queue are tried again. Several engines may
    run, and postroom run is one of them. SIGTERM or Ctrl-C finishes what is in hand and stops.

    \b
    Examples:
      postroom compensate
      postroom compensate --check 10
      postroom compensate --once
    """
    with opened() as it:
        engine = it.compensator(check)

        def stop(_signal: int, _frame: FrameType | None) -> None:
            engine.stop()
            output.note("stopping; what is in hand is finished first")

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, stop)
        if not once and not settings.json and sys.stderr.isatty():
            output.note("running; Ctrl-C stops")
        checked = engine.once() if once else engine.run()
    _finish(checked)


def _finish(checked: Checked) -> None:
    if settings.json:
        output.as_json({"status": "00", **checked.as_dict()})
        return
    output.say(
        f"{checked.spheres} sphere(s) at the last look, {checked.aborted} aborted, {checked.compensated} compensated"
    )
    if checked.parked:
        output.note(
            f"{checked.parked} wait(s) for a queue that takes nothing now: see postroom spheres --state ABORTING"
        )
