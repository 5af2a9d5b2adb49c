"""The command that runs the engine: progress for a person, a line per step for a log."""

from __future__ import annotations

import signal
import sys
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import typer

from postroom.interfaces.cli import output
from postroom.interfaces.cli.context import (
    ConfOption,
    MasterOption,
    opened,
    settings,
    spark_settings,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from postroom.engine.dispatch import Outcome
    from postroom.engine.runner import Progress, Totals
    from postroom.room import Postroom
    from postroom.store.kernel.outbox import Effect


def run(
    until_idle: Annotated[bool, typer.Option("--until-idle", help="Stop when no work is left.")] = False,
    master: MasterOption = "local[*]",
    conf: ConfOption = None,
) -> None:
    """Run the room until stopped.

    Applies rules to messages of their queues, routes events along arcs, offers messages of stations to procedures,
    moves messages that are due in echo queues, starts the command lines of queues that became non-empty, and undoes
    spheres whose owner has ended, as postroom compensate does. One engine per room. Spark is started with the first
    message to evaluate. SIGTERM or Ctrl-C finishes the current steps and stops.

    \b
    Examples:
      postroom run
      postroom run --until-idle
      postroom run --master spark://host:7077 --conf spark.executor.memory=2g
    """
    settings_of_spark = spark_settings(conf)
    reporter = _Reporter()
    with opened() as it:

        def stop(_signal: int, _frame: FrameType | None) -> None:
            it.stop()
            output.note("stopping after the current work")

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, stop)
        if not settings.json and sys.stderr.isatty():
            output.note("running; Ctrl-C stops")
        with _progress(it) as progress:
            totals = it.engine.run_totals(
                until_idle=until_idle,
                report=reporter.report,
                progress=progress,
                master=master,
                conf=settings_of_spark,
            )
    reporter.finish(totals)


class _Reporter:
    """Tells of effects as they are tried, and of everything at the end."""

    def __init__(self) -> None:
        self._effects: list[dict[str, Any]] = []
        self._done = self._failed = 0

    def report(self, effect: Effect, outcome: Outcome, again: bool) -> None:
        self._done += outcome.done
        self._failed += not outcome.done and not again
        if settings.json:
            self._effects.append({"effect": effect.id, "done": outcome.done, "retry": again, **outcome.result})
        else:
            words = " ".join(outcome.result.get("argv", [effect.kind]))
            more = "; will be tried again" if again else "" if outcome.done else "; see postroom outbox list"
            output.note(f"{words}: {outcome.result['outcome']}{more}")

    def finish(self, totals: Totals) -> None:
        if settings.json:
            output.as_json(
                {
                    "status": "00",
                    "step_count": totals.steps,
                    "message_count": totals.messages,
                    "created_count": totals.created,
                    "failures": totals.failures,
                    "blocked": totals.waiting,
                    "effects": self._effects,
                }
            )
            return
        if totals.steps:
            failed = f", {totals.failures} of them with an error message" if totals.failures else ""
            output.note(f"{totals.messages} message(s) processed in {totals.steps} step(s){failed}")
        for queue, goal in totals.waiting.items():
            output.note(f"{queue} waits: {goal} is on hold; free it with: postroom enable {goal}")
        failed = f", {self._failed} failed: see postroom outbox list" if self._failed else ""
        output.note(f"{self._done} effect(s) done{failed}")


@contextmanager
def _progress(it: Postroom) -> Iterator[Progress | None]:
    """A line per second with the figures by name; on a terminal, one that lives below them."""
    if settings.json:
        yield None
    elif sys.stderr.isatty():
        from rich.console import Console
        from rich.live import Live

        began, waiting = monotonic(), it.operations.lag()
        first = f"{waiting} waiting; Spark is started, which takes some seconds" if waiting else "nothing waits"
        with Live(first, console=Console(stderr=True), transient=True, refresh_per_second=4) as live:
            log = _log(it, lambda line: live.console.print(line, highlight=False, soft_wrap=True))

            def show(totals: Totals) -> None:
                log(totals)
                live.update(_line(totals, monotonic() - began, it.operations.lag()))

            yield show
    else:
        yield _log(it, output.note)


def _log(it: Postroom, say: Callable[[str], None]) -> Progress:
    told = 0.0

    def log(totals: Totals) -> None:
        nonlocal told
        if monotonic() - told >= 1 and totals.last is not None:
            told = monotonic()
            spent = " ".join(f"{name}_ms={seconds * 1000:.0f}" for name, seconds in totals.last.seconds.items())
            say(
                f"step={totals.steps} messages={totals.messages} created={totals.created} failures={totals.failures} "
                f"lag={it.operations.lag()} {spent}"
            )

    return log


def _line(totals: Totals, seconds: float, lag: int) -> str:
    rate = f", {totals.messages / seconds:.1f} a second" if totals.messages and seconds else ""
    failed = f", {totals.failures} failed" if totals.failures else ""
    return f"{totals.messages} processed{failed}{rate}; {lag} waiting"
