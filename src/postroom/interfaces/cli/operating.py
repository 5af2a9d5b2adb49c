"""Commands for whoever looks after a room: doctor."""

from __future__ import annotations

from typing import Annotated

import typer

from postroom.diagnosis.examination import unopened
from postroom.diagnosis.finding import Finding, Level
from postroom.interfaces.cli import output
from postroom.interfaces.cli.context import JsonOption, RoomOption, opened, settings
from postroom.room import DEFAULT_URL
from postroom.room.opening import resolved


def doctor(
    deep: Annotated[
        bool, typer.Option("--deep", help="Read every message and the whole journal, not only the newest.")
    ] = False,
    room: RoomOption = None,
    json: JsonOption = False,
) -> None:
    """Say what is wrong with the room or this machine, and what to do.

    Looks at Python, packages, Java and disk space; at the database, its settings and its schema; at messages and the
    journal; at the engine and what waits for it; at queues on hold, errors, locks, nodes and spheres. Nothing is
    changed, and a room of an older version is not upgraded. Exits with 1 if there is a warning or something wrong.

    \b
    Examples:
      postroom doctor
      postroom doctor --deep
      postroom doctor --json --room postgresql://host/db
    """
    found = _findings(deep)
    problems = [finding for finding in found if finding.level.is_problem]
    if settings.json:
        output.as_json({"status": "99" if problems else "00", "findings": [finding.as_dict() for finding in found]})
    else:
        _say(found)
        output.note(f"{len(problems)} problem(s) found" if problems else "nothing is wrong")
    if problems:
        raise typer.Exit(1)


def _findings(deep: bool) -> list[Finding]:
    from postroom.diagnosis import machine  # it reads what is installed, and nothing else needs that

    url = resolved(settings.room)
    reason = unopened(url, named=url != DEFAULT_URL)
    if reason is not None:
        return [*machine.examine(url), reason]
    with opened() as it:
        return it.diagnose(deep=deep)


def _say(found: list[Finding]) -> None:
    """A line for each finding, and under it what to do."""
    for finding in found:
        where = f"{finding.where}: " if finding.where and finding.level is not Level.OK else ""
        output.say(f"{finding.level:<7}  {finding.check:<10}  {where}{finding.what}")
        if finding.do:
            output.say(f"{'':<7}  {'':<10}  → {finding.do}")
