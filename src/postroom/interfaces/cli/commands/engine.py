"""The command that runs the engine: progress for a person, a line per step for a log."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

from postroom.errors import ArgumentInvalid
from postroom.interfaces.cli import output
from postroom.interfaces.cli.context import ConfOption, MasterOption, opened, option, settings, spark_settings
from postroom.interfaces.cli.lasting import Lasting, stop_on_signals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from postroom.engine.dispatch import Outcome, Report
    from postroom.engine.runner import RunProgress, Totals
    from postroom.room import Postroom
    from postroom.store.kernel.outbox import Effect


def run(
    until_idle: Annotated[bool, option("--until-idle", "Stop when no work is left.")] = False,
    senders: Annotated[
        bool, option("--senders", "Only send what the outbox has: evaluate nothing, start no Spark.")
    ] = False,
    master: MasterOption = "local[*]",
    conf: ConfOption = None,
    spark: Annotated[
        str | None,
        option(
            "--spark auto|always",
            "auto: few messages are evaluated in a worker process, many on Spark. always: everything on Spark. "
            "Default: $POSTROOM_SPARK, else auto; always with --master or --conf.",
        ),
    ] = None,
) -> None:
    """Run the room until stopped.

    Applies rules to messages of their queues, routes events along arcs, offers messages of stations to procedures,
    moves messages that are due in echo queues, starts the command lines of queues that became non-empty, and undoes
    spheres whose owner has ended, as postroom compensate does. Several engines share a room; one with --until-idle has
    it alone. Few messages are evaluated in a worker process; Spark is started in the background, with --until-idle only
    if there is much to do. SIGTERM or Ctrl-C finishes the current steps and stops.

    With --senders, this process sends messages to partners and starts command lines, and engines leave that to it.

    \b
    Examples:
      postroom run
      postroom run --until-idle
      postroom run --senders
      postroom run --spark always
      postroom run --master spark://host:7077 --conf spark.executor.memory=2g
    """
    from postroom.engine.runner import Totals

    settings_of_spark = spark_settings(conf)
    if senders and (conf or spark is not None or master != "local[*]"):
        raise ArgumentInvalid(argument="--senders", why="it starts no Spark: leave --master, --conf and --spark out")
    reporter = _Reporter()
    lasting = Lasting(opened, lambda it: it.stop(), once=until_idle)

    def work(it: Postroom) -> Totals:
        stop_on_signals(lasting.finish, "work")
        if not settings.json and sys.stderr.isatty():
            output.note("running; Ctrl-C stops")
        if senders:
            with _sending(reporter) as report:
                it.engine.run_senders(until_idle=until_idle, report=report)
            return Totals()  # effects were all there was to do
        with _progress(it, lasts=not until_idle) as progress:
            return it.engine.run_totals(
                until_idle=until_idle,
                report=reporter.report,
                progress=progress,
                master=master,
                conf=settings_of_spark,
                spark=spark,
            )

    reporter.finish(lasting.run(work) or Totals())


class _Reporter:
    """Reports effects as they are tried, and totals at the end."""

    def __init__(self) -> None:
        self._effects: list[dict[str, Any]] = []
        self._done = self._failed = 0
        self.tried = self.unsent = 0  # attempts, and those of them that came to nothing

    def report(self, effect: Effect, outcome: Outcome, again: bool) -> None:
        self._done += outcome.done
        self.tried += 1
        self.unsent += not outcome.done
        self._failed += not outcome.done and not again and effect.message is None
        if settings.json:
            self._effects.append({"effect": effect.id, "done": outcome.done, "retry": again, **outcome.result})
        elif effect.message is not None:  # very many may be sent: only failures are told
            if not outcome.done:
                more = "will be tried again" if again else "an error message says so"
                output.note(
                    f"{effect.payload['queue']} {effect.payload['message']}: {outcome.result['outcome']}; {more}"
                )
        else:
            words = " ".join(outcome.result.get("argv", [effect.kind]))
            more = "; will be tried again" if again else "" if outcome.done else "; see postroom outbox list"
            output.note(f"{words}: {outcome.result['outcome']}{more}")

    def finish(self, totals: Totals) -> None:
        """Report the totals."""
        if settings.json:
            output.as_json({**_figures(totals), "effects": self._effects})
            return
        if totals.steps:
            failed = f", {totals.failures} of them with an error message" if totals.failures else ""
            output.note(f"{totals.messages} message(s) processed in {totals.steps} step(s){failed}")
        for queue, goal in totals.waiting.items():
            output.note(f"{queue} waits: {output.on_hold(goal)}")
        failed = f", {self._failed} failed: see postroom outbox list" if self._failed else ""
        output.note(f"{self._done} effect(s) done{failed}")


def _figures(totals: Totals) -> dict[str, Any]:
    return {
        "step_count": totals.steps,
        "message_count": totals.messages,
        "created_count": totals.created,
        "failures": totals.failures,
        "blocked": totals.waiting,
        "ways": totals.evaluated,
    }


@contextmanager
def _progress(it: Postroom, *, lasts: bool) -> Iterator[RunProgress | None]:
    """Progress of the engine: a log line per second, or a live line at a terminal.

    One that ``lasts`` says at once that a queue waits for another, and does not leave that for its end.
    """
    if settings.json:
        yield None
    elif sys.stderr.isatty():
        from rich.console import Console
        from rich.live import Live

        began, waiting = monotonic(), it.operations.lag()
        first = f"{waiting} waiting" if waiting else "nothing waits"
        with Live(first, console=Console(stderr=True), transient=True, refresh_per_second=4) as live:
            log = _Log(it, lambda line: live.console.print(line, highlight=False, soft_wrap=True), lasts=lasts)

            def show(totals: Totals) -> None:
                log.note(totals)
                live.update(_line(totals, monotonic() - began, it.operations.lag()))

            yield show
            log.end()
    else:
        log = _Log(it, output.note, lasts=lasts)
        yield log.note
        log.end()


@contextmanager
def _sending(reporter: _Reporter) -> Iterator[Report]:
    """Progress without evaluation: figures of effects."""
    if settings.json:
        yield reporter.report
    elif sys.stderr.isatty():
        from rich.console import Console
        from rich.live import Live

        began = monotonic()
        with Live("nothing sent yet", console=Console(stderr=True), transient=True, refresh_per_second=4) as live:

            def show(effect: Effect, outcome: Outcome, again: bool) -> None:
                reporter.report(effect, outcome, again)
                rate = f", {reporter.tried / (monotonic() - began):.1f} a second"
                failed = f", {reporter.unsent} failed" if reporter.unsent else ""
                live.update(f"{reporter.tried} tried{failed}{rate}")

            yield show
    else:
        log = _Lines(output.note)

        def note(effect: Effect, outcome: Outcome, again: bool) -> None:
            reporter.report(effect, outcome, again)
            log.put(lambda: f"effects={reporter.tried} failures={reporter.unsent}")

        yield note
        log.end()


class _Lines:
    """A log line of figures, at most one per second, summing up since the last one."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._told = 0.0
        self._left: Callable[[], str] | None = None

    def put(self, line: Callable[[], str]) -> None:
        self._left = line
        if monotonic() - self._told >= 1:
            self.end()

    def end(self) -> None:
        if self._left is not None:
            self._say(self._left())
            self._told, self._left = monotonic(), None


class _Log(_Lines):
    """Log lines with the figures of an engine."""

    def __init__(self, it: Postroom, say: Callable[[str], None], *, lasts: bool) -> None:
        super().__init__(say)
        self._room = it
        self._lasts = lasts
        self._waiting: dict[str, str] = {}  # as it was told

    def note(self, totals: Totals) -> None:
        if totals.last is None:
            return
        for queue, goal in totals.waiting.items() if self._lasts else ():
            if self._waiting.get(queue) != goal:
                self._say(f"{queue} waits: {output.on_hold(goal)}")
        self._waiting = dict(totals.waiting)
        spent = " ".join(f"{name}_ms={seconds * 1000:.0f}" for name, seconds in totals.last.seconds.items())
        figures = f"step={totals.steps} messages={totals.messages} created={totals.created} failures={totals.failures}"
        evaluated = totals.last.evaluated or "-"
        self.put(lambda: f"{figures} lag={self._room.operations.lag()} evaluated={evaluated} {spent}")


def _line(totals: Totals, seconds: float, lag: int) -> str:
    rate = f", {totals.messages / seconds:.1f} a second" if totals.messages and seconds else ""
    failed = f", {totals.failures} failed" if totals.failures else ""
    return f"{totals.messages} processed{failed}{rate}; {lag} waiting"
