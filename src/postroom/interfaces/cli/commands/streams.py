"""The command that runs streams from outside: a line for each batch, and what was done at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from postroom.interfaces.cli import output
from postroom.interfaces.cli.context import ConfOption, MasterOption, argument, opened, option, settings, spark_settings
from postroom.interfaces.cli.lasting import stop_on_signals

if TYPE_CHECKING:
    from postroom.flows.streams.totals import StreamTotals


def stream(
    spaces: Annotated[list[str] | None, argument("SPACE...", "Spaces of the streams to run; default: all.")] = None,
    until_idle: Annotated[bool, option("--until-idle", "Stop when all available input was read.")] = False,
    checkpoints: Annotated[str | None, option("--checkpoints FOLDER", "Default: beside the file of the room.")] = None,
    every: Annotated[float, option("--every SECONDS", "Time from one batch to the next.", show_default=True)] = 0.0,
    refused: Annotated[
        str | None,
        option("--refused GATEWAY/FOLDER", "Where events go that do not fit. Default: error messages of the room."),
    ] = None,
    restart: Annotated[bool, option("--restart", "Forget offsets and states; read all again.")] = False,
    packages: Annotated[str | None, option("--packages NAMES", "Packages that Spark is to fetch.")] = None,
    master: MasterOption = "local[*]",
    conf: ConfOption = None,
) -> None:
    """Run the streams from outside until stopped.

    Reads the spaces with from, sends their events through the graph, and writes the spaces with to. The graph's version
    is the same for a whole batch; a change takes effect with the next one. SIGTERM or Ctrl-C finishes the current
    batch and stops. Started again, a stream goes on where it was.

    \b
    Examples:
      postroom stream
      postroom stream Bids --until-idle
      postroom stream --refused market/refused --every 10
    """
    with opened() as it:
        stop_on_signals(it.stop, "batch")
        totals = it.engine.stream(
            *(spaces or ()),
            until_idle=until_idle,
            checkpoints=checkpoints,
            every=every,
            refused=refused,
            restart=restart,
            packages=packages,
            master=master,
            conf=spark_settings(conf),
            progress=None if settings.json else _tell,
        )
    _finish(totals)


def _finish(totals: list[StreamTotals]) -> None:
    if settings.json:
        output.as_json({"streams": [total.as_dict() for total in totals]})
    for total in () if settings.json else totals:
        output.note(
            f"{total.stream}: {total.batches} batch(es), {total.delivered} event(s) delivered, {total.stored} stored, "
            f"{total.refused} refused"
        )


def _tell(totals: StreamTotals) -> None:
    """Print progress after each batch."""
    output.note(
        f"stream={totals.stream} batch={totals.batch} version={totals.version} delivered={totals.delivered} "
        f"stored={totals.stored} refused={totals.refused} ms={totals.seconds * 1000:.0f}"
    )
