"""The command work: calls functions of your module with the messages of their queues until stopped."""

from __future__ import annotations

import importlib
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from postroom.errors import ArgumentInvalid, PostroomError
from postroom.interfaces.cli import output
from postroom.interfaces.cli.context import argument, opened, option
from postroom.interfaces.cli.lasting import Lasting, by_signal

if TYPE_CHECKING:
    from postroom.queues.leases.working import Progress
    from postroom.room import Postroom


def work(
    app: Annotated[str, argument("MODULE:NAME", "The module and name of the workers.")],
    until_idle: Annotated[bool, option("--until-idle", "Stop when nothing can be delivered now.")] = False,
    health: Annotated[Path | None, option("--health FILE", "A file to write the counts into.")] = None,
) -> None:
    """Let workers work on the messages of their queues.

    NAME is a postroom.Workers of a module that can be imported from here. On Ctrl-C or SIGTERM it
    finishes what was begun and leases nothing more. On SIGHUP it does the same, loads the module again and goes on;
    if the module is broken, it says so and goes on with the one it has.

    \b
    Example:
      postroom work shop:workers
    """
    lasting = Lasting(opened, lambda it: it.consumers.stop(), once=until_idle)
    signals, report = _Signals(app, lasting, until_idle), _Report(health)

    from postroom.exchange.output_file import refuse_room
    from postroom.interfaces.http.observing.logs import configure

    if health is not None:
        refuse_room(health)

    def run(it: Postroom) -> None:
        signals.heed()
        workers = _found(app)
        if not logging.getLogger("postroom.work").hasHandlers():  # unless the module has its own log
            configure("text")
        report(it.consumers.run(workers=workers, until_idle=until_idle, report=report))

    lasting.run(run)
    totals = report.totals
    if signals.again:
        # The same program, with the same words.
        os.execv(sys.executable, [sys.executable, "-m", "postroom", *sys.argv[1:]])  # noqa: S606
    counts = {"done_count": totals.done, "failed_count": totals.failed, "dead_count": totals.dead}
    output.answer({**counts, "lost_count": totals.lost}, _told(totals))


class _Signals:
    """What signals ask for: to end, or to begin again with the module as it is now."""

    def __init__(self, app: str, lasting: Lasting, until_idle: bool) -> None:
        self._app = app
        self._lasting = lasting
        self._until_idle = until_idle
        self._to_end = False
        self._is_sound = False

    @property
    def again(self) -> bool:
        """Whether to begin again."""
        return self._is_sound and not self._to_end

    def heed(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._asked)

    def _asked(self, number: int, _: object) -> None:
        if number == signal.SIGHUP and not self._until_idle:
            threading.Thread(target=self._try, name="postroom-reload", daemon=True).start()
        else:
            self._to_end = True
            by_signal(self._lasting.finish)

    def _try(self) -> None:
        """Load the module in another process first: a broken one must not end the worker."""
        code = f"from {__name__} import check; check({self._app!r})"
        tried = subprocess.run(  # noqa: S603  # the user's module, which would be loaded next
            [sys.executable, "-c", code], stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
        if tried.returncode == 0:
            self._is_sound = True
            by_signal(self._lasting.finish)
            return
        told = tried.stderr.strip().splitlines() or [f"it ended with {tried.returncode}"]
        output.note(f"postroom: {told[-1]}; going on with {self._app} as it was")


def check(app: str) -> None:
    """End this process with what is wrong with the workers of a module, if anything is."""
    from postroom.queues.leases.working import Surroundings, check_workers
    from postroom.room import Postroom

    try:
        check_workers(_found(app).workers, Surroundings((Postroom.__new__(Postroom),)))
    except PostroomError as error:
        sys.exit(f"{error.code}: {error}")


def _found(app: str) -> Any:
    from postroom.queues.leases.working import Workers

    module, colon, name = app.partition(":")
    if not colon or not name or not all(part.isidentifier() for part in module.split(".")):
        raise ArgumentInvalid(argument=app, why="it is not MODULE:NAME")
    sys.path.insert(0, os.getcwd())
    try:
        value = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, SyntaxError) as error:
        raise ArgumentInvalid(argument=app, why=str(error)) from error
    except Exception as error:
        raise ArgumentInvalid(argument=app, why=f"{type(error).__name__}: {error} ({_place(error)})") from error
    if not isinstance(value, Workers):
        raise ArgumentInvalid(argument=app, why="it is no postroom.Workers")
    return value


def _place(error: Exception) -> str:
    """Where a module failed as it was loaded: its own line, not that of what it called."""
    places = traceback.extract_tb(error.__traceback__)
    loaded = [each for each in places if each.name == "<module>"] or places
    return f"{loaded[-1].filename}, line {loaded[-1].lineno}, as it was loaded"


class _Report:
    """Shows counts at a terminal, and writes them to a file for health checks."""

    def __init__(self, health: Path | None) -> None:
        self._health = health
        self._last = ""
        self._begun: list[Progress] = []  # one more each time that the room was opened again

    @property
    def totals(self) -> Progress:
        from postroom.queues.leases.working import Progress

        totals = Progress()
        for one in self._begun:
            totals.add(done=one.done, failed=one.failed, dead=one.dead, lost=one.lost, running=one.running)
        return totals

    def __call__(self, progress: Progress) -> None:
        if not self._begun or progress is not self._begun[-1]:
            self._begun.append(progress)
        progress = self.totals
        told = _told(progress)
        if told != self._last and sys.stderr.isatty():
            output.note(told)
        if self._health is not None:
            counts = {"done_count": progress.done, "failed_count": progress.failed, "dead_count": progress.dead}
            counts["running_count"] = progress.running
            self._health.write_text(json.dumps({"status": "00", **counts}) + "\n")
        self._last = told


def _told(progress: Progress) -> str:
    return f"done: {progress.done}, failed: {progress.failed}, dead letters: {progress.dead}, lost: {progress.lost}"
