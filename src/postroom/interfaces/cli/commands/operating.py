"""Commands for whoever looks after a room: top, doctor."""

from __future__ import annotations

import shutil
import signal
import sys
from contextlib import suppress
from dataclasses import replace
from time import sleep
from typing import TYPE_CHECKING, Annotated

import typer

from postroom.interfaces.cli import output
from postroom.interfaces.cli.context import opened, option, settings
from postroom.limits import TOP_SECONDS
from postroom.model.moment import to_iso

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from postroom.diagnosis.finding import Finding, Severity
    from postroom.engine.presence import Presence
    from postroom.room import Postroom
    from postroom.room.overview import Overview, QueueSeen, StepSeen


def top(
    once: Annotated[bool, option("--once", "Print one snapshot, and stop.")] = False,
    every: Annotated[
        float | None,
        option(
            "--every SECONDS",
            f"Take a picture this often. Default on a terminal: {TOP_SECONDS:g}; elsewhere one picture is taken.",
            min=0.1,
        ),
    ] = None,
) -> None:
    """Watch the room at work.

    Shows queues, waiting messages, the engine and its last steps, errors, spheres, outbox.

    "in/s" and "out/s" are messages per second since the previous picture. On a terminal the picture is redrawn until
    Ctrl-C; in a pipe one is printed, or with --every a series. With --json it is always one.

    \b
    Examples:
      postroom top
      postroom top --every 10
      postroom top --once
    """
    with opened() as it:
        if settings.json:
            output.as_json(it.operations.overview().as_dict())
        elif once or (every is None and not sys.stdout.isatty()):
            _print(it.operations.overview())
        else:
            with suppress(KeyboardInterrupt):
                _watch(it, every or TOP_SECONDS)


def _watch(it: Postroom, seconds: float) -> None:
    """Print snapshots until stopped; restores the terminal in any case."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    picture = it.operations.overview()
    if sys.stdout.isatty():
        from rich.live import Live

        with Live(_drawn(picture), auto_refresh=False) as live:
            while True:
                sleep(seconds)
                picture = it.operations.overview(picture)
                live.update(_drawn(picture), refresh=True)
    while True:
        _print(picture)
        output.say("")
        sys.stdout.flush()
        sleep(seconds)
        picture = it.operations.overview(picture)


Rows = list[list[str]]


def _sections(picture: Overview) -> Iterator[tuple[list[str], Rows]]:
    """The tables of a snapshot, without empty ones."""
    yield ["queue", "waiting", "processed", "in/s", "out/s", "state"], [_cells(queue) for queue in picture.queues]
    if picture.steps:
        rows = [[to_iso(step.at), _at_least(step), str(step.created), step.evaluated] for step in picture.steps]
        yield ["step", "messages", "made", "evaluated"], rows
    errors = [[name, str(count)] for name, count in picture.errors.items() if count]
    if errors:
        yield ["errors in", "messages"], errors
    if picture.spheres:
        yield [f"spheres {state}" for state in picture.spheres], [[str(count) for count in picture.spheres.values()]]
    if picture.in_doubt:
        yield ["in doubt"], [[doubt] for doubt in picture.in_doubt]


def _cells(queue: QueueSeen) -> list[str]:
    rates = ["" if rate is None else f"{rate:.1f}" for rate in (queue.rate_in, queue.rate_out)]
    name = f"{queue.name} ({queue.path})" if queue.path else queue.name
    return [
        name,
        str(queue.waiting),
        str(queue.processed),
        *rates,
        "held" if queue.hold else ", ".join(_aside(queue)),
    ]


def _aside(queue: QueueSeen) -> Iterator[str]:
    """What is in the queue and not delivered now, and why."""
    for count, state in ((queue.leased, "leased"), (queue.delayed, "delayed"), (queue.blocked, "blocked")):
        if count:
            yield f"{count} {state}"
    if queue.waits_for:
        yield f"waits for {queue.waits_for}"


def _at_least(step: StepSeen) -> str:
    return str(step.messages) if step.whole else f"{step.messages}+"


def _headlines(picture: Overview) -> list[str]:
    from postroom.engine.presence import EngineState

    engine = picture.engine
    headline = {EngineState.RUNS: f"{engine.owner} runs", EngineState.FREE: "no engine runs"}.get(engine.state, "")
    rate = "" if picture.rate is None else f", {picture.rate:.1f} messages/s"
    lags = ", ".join(f"{count} for {name}" for name, count in picture.lags.items())
    return [
        f"{to_iso(picture.at)}  {headline or f'the engine ({engine.owner}) is {engine.state}'}{rate}",
        *(str(peer) for peer in (picture.engines if len(picture.engines) > 1 else ())),
        *_senders(picture.senders),
        f"waiting: {lags}; outbox: {picture.outbox['pending']} pending, {picture.outbox['failed']} failed",
    ]


def _senders(seen: Presence) -> Iterator[str]:
    """Which process sends, if it is not the engine or should not be."""
    from postroom.engine.presence import EngineState

    if seen.state is EngineState.RUNS:
        yield f"{seen.owner} sends"
    elif seen.state is not EngineState.FREE:
        yield f"the senders' process ({seen.owner}) is {seen.state}"


def _print(picture: Overview) -> None:
    for line in _headlines(picture):
        output.say(line)
    for headings, rows in _sections(picture):
        output.table(headings, rows)


def _drawn(picture: Overview) -> RenderableType:
    """The snapshot for a terminal: the busiest queues first, as many as fit."""
    from rich.console import Group
    from rich.text import Text

    from postroom.interfaces.cli.terminal import grid

    busiest = sorted(picture.queues, key=lambda queue: (-(queue.rate_in or 0) - (queue.rate_out or 0), -queue.waiting))
    parts = list(_sections(replace(picture, queues=busiest)))
    used = 3 + len(picture.engines) + sum(len(rows) + 3 for _, rows in parts[1:]) + 3
    shown = max(3, shutil.get_terminal_size().lines - 1 - used)
    more = len(busiest) - shown
    width = shutil.get_terminal_size().columns
    grids = [
        grid(headings, [list(map(output.one_line, row)) for row in rows[:shown]], width) for headings, rows in parts
    ]
    lines = [*_headlines(picture), *([f"and {more} queue(s) more; postroom count lists all"] if more > 0 else [])]
    return Group(*(Text(line) for line in lines), *grids)


def doctor(
    deep: Annotated[bool, option("--deep", "Read every message and the whole journal, not only the newest.")] = False,
    brief: Annotated[bool, option("--brief", "Leave out checks that found nothing.")] = False,
) -> None:
    """Say what is wrong with the room or machine, and what to do.

    Checks Python, packages, Java and disk space; the database, its settings and its schema; messages and the journal;
    the engine and its waiting messages; queues on hold, errors, locks, nodes and spheres. Nothing is changed, and a
    room of an older version is not upgraded. Exits with 1 if there is a warning or something wrong.

    \b
    Examples:
      postroom doctor
      postroom doctor --deep --brief
      postroom doctor --json --room postgresql://host/db
    """
    findings = [finding for finding in _findings(deep) if not brief or not finding.level.is_ok]
    problems = [finding for finding in findings if finding.level.is_problem]
    if settings.json:
        output.as_json({"status": "99" if problems else "00", "findings": [finding.as_dict() for finding in findings]})
    else:
        _say(findings)
        output.note(_summary([finding.level for finding in problems]))
    if problems:
        raise typer.Exit(1)


def _summary(problems: Sequence[Severity]) -> str:
    wrong = sum(level.is_wrong for level in problems)
    parts = [f"{wrong} wrong"] if wrong else []
    parts += [f"{len(problems) - wrong} warning(s)"] if len(problems) > wrong else []
    return ", ".join(parts) or "nothing is wrong"


def _findings(deep: bool) -> list[Finding]:
    from postroom.diagnosis import machine  # it reads what is installed, and nothing else needs that
    from postroom.diagnosis.examination import unopened
    from postroom.room import DEFAULT_URL
    from postroom.room.opening import resolved

    url = resolved(settings.room)
    served = url.startswith(("http://", "https://"))  # then the server examines its own machine
    reason = None if served else unopened(url, named=url != DEFAULT_URL)
    if reason is not None:
        return [*machine.examine(url), reason]
    with opened() as it:
        return it.operations.diagnose(deep=deep)


def _say(findings: list[Finding]) -> None:
    """A line for each finding, with its advice below."""
    for finding in findings:
        where = f"{finding.where}: " if finding.where and not finding.level.is_ok else ""
        output.say(f"{finding.level:<7}  {finding.check:<10}  {output.one_line(where + finding.what)}")
        if finding.do:
            output.say(f"{'':<7}  {'':<10}  → {output.one_line(finding.do)}")
