"""The program ``postroom``: its commands in order, and what happens to errors."""

from __future__ import annotations

import io
import sys
from typing import Annotated

import typer

from postroom import __version__
from postroom.errors import PostroomError
from postroom.interfaces.cli import (
    counters,
    engine,
    flows,
    nodes,
    operating,
    output,
    procedures,
    queries,
    queues,
    rooms,
    rules,
    spheres,
    stations,
    upkeep,
)
from postroom.interfaces.cli.context import Commands, JsonOption, RoomOption, settings, with_password_source
from postroom.interfaces.cli.panels import Panels

app = Commands(
    name="postroom",
    cls=Panels,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _version(value: bool) -> None:
    if value:
        output.say(f"postroom {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=False)
def postroom(
    room: RoomOption = None,
    json: JsonOption = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Structured messages in transactional queues.

    \b
    First steps:
      postroom queue create orders
      postroom send orders --body "order 17"
      postroom receive orders
      postroom load FILE.qdl        a whole tree of queues; see docs/guide/queues.md
      postroom load FILE.demaq      a program of rules; see docs/guide/rules.md
      postroom load FILE.flow       a graph that routes events; see docs/guide/flows.md
      postroom load FILE.form       message types, procedures, counters; see docs/guide/stations.md
    """


for command in (
    queues.send,
    queues.receive,
    queues.count,
    queues.accept,
    queues.peek,
    queues.info,
    queues.history,
    queues.disable,
    queues.enable,
    queues.hierarchy,
    rooms.load,
    rooms.trace,
    rooms.locate,
    rooms.show,
    rooms.journal,
    rooms.verify,
    rooms.mend,
    engine.run,
    rules.catalog,
    rules.explain,
    rules.slice,
    rules.why,
    rules.try_,
    flows.publish,
    flows.subscribe,
    flows.unsubscribe,
    flows.connect,
    flows.disconnect,
    flows.subscriptions,
    flows.graph,
    nodes.login,
    nodes.logout,
    stations.form,
    stations.create,
    stations.copy,
    stations.modify,
    stations.list_,
    stations.next_,
    stations.mail,
    stations.ship,
    stations.get,
    queries.query,
    queries.sql,
    procedures.waiting,
    spheres.spheres,
    spheres.compensate,
    operating.top,
    operating.doctor,
    upkeep.sweep,
    upkeep.archive,
    upkeep.backup,
    upkeep.restore,
):
    app.command(command.__name__.removesuffix("_"))(command)  # some names are Python's
app.add_typer(queues.queue_app, name="queue")
app.add_typer(rooms.outbox_app, name="outbox")
app.add_typer(rules.collection_app, name="collection")
app.add_typer(flows.principal_app, name="principal")
app.add_typer(nodes.node_app, name="node")
app.add_typer(nodes.station_app, name="station")
app.add_typer(stations.dossier_app, name="dossier")
app.add_typer(queries.table_app, name="table")
app.add_typer(procedures.procedure_app, name="procedure")
app.add_typer(counters.counter_app, name="counter")
app.add_typer(spheres.sphere_app, name="sphere")
app.add_typer(upkeep.retention_app, name="retention")


def main() -> None:
    """Run one command. Refusals exit with 1 and one line, wrong usage with 2."""
    settings.room, settings.json, settings.password_source = None, False, ""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a narrow terminal must not cost anyone a message
    try:
        try:
            app()
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()  # here, where a failure can still be told
    except PostroomError as error:
        output.failure(with_password_source(error))
        sys.exit(1)
    except BrokenPipeError:  # the reader of our output left; nothing more to say
        output.silence()
        sys.exit(1)
    except OSError as error:
        output.silence()
        sys.stderr.write(f"postroom: output-failed: cannot write the answer: {error.strerror}\n")
        sys.exit(1)
    except KeyboardInterrupt:
        sys.stderr.write("\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
