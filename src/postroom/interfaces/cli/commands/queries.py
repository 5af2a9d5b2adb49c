"""Commands that ask stations: query, table …, sql."""

from __future__ import annotations

import re
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, Any

import typer

from postroom.errors import ArgumentInvalid
from postroom.interfaces.cli import output
from postroom.interfaces.cli.commands.stations import (
    STANDARD_INPUT,
    TypeArgument,
    check_heading,
    enter,
    summary,
    tell_damaged,
)
from postroom.interfaces.cli.context import (
    Commands,
    ConfOption,
    MasterOption,
    argument,
    opened,
    option,
    settings,
    spark_settings,
    standard_input,
)
from postroom.interfaces.cli.logins import StationOption, acting
from postroom.limits import QUERY_SECONDS, SQL_SECONDS

if TYPE_CHECKING:
    from postroom.room import Postroom
    from postroom.stations.forms.form import Form
    from postroom.stations.queries.images import Answer

table_app = Commands(help="Temporary tables: saved results of queries.")

TableArgument = Annotated[str, argument("NAME", "The name of a temporary table.")]
_CONDITION = re.compile(r"(?P<field>[^<>=]+)(?:=|(?=[<>]))(?P<condition>.*)", re.DOTALL)


def query(
    type: TypeArgument,
    conditions: Annotated[list[str] | None, argument("FIELD=CONDITION", "The conditions.")] = None,
    scope: Annotated[
        str,
        typer.Option(
            "--scope",
            metavar="SCOPE",
            help="local, group (this node), global, stations=A,B, or as-of=N (a saved query).",
        ),
    ] = "local",
    into: Annotated[str | None, option("--into NAME", "Save the result as a temporary table.")] = None,
    count: Annotated[bool, option("--count", "Print only the number of messages.")] = False,
    timeout: Annotated[
        float, option("--timeout SECONDS", "Time limit for the nodes.", show_default=True)
    ] = QUERY_SECONDS,
    master: MasterOption = "local[*]",
    conf: ConfOption = None,
    station: StationOption = None,
) -> None:
    """Find messages by example, a condition for each field.

    A condition is a value, a comparison (>10, <>10), a range (10..20), or a pattern (off*); of several, one is enough.
    Without one, standard input has a form with conditions in its fields; if that is empty too, all messages of the type
    are found. So a password is read only from $POSTROOM_PASSWORD or the terminal. Scopes other than local run on Spark
    if there are many messages to read.

    \b
    Examples:
      postroom query 'MEETING ANNOUNCEMENT' 'Subject=off*'
      postroom query FEE 'Fee>10' Paid=false --scope global --count
      postroom query FEE Fee=10..20 --scope stations=Dennis,Simon --into fees
      postroom query 'MEETING ANNOUNCEMENT' --scope group < sketch.txt
    """
    with opened() as it:
        form = it.stations.form(type).form
        sought = _conditions(conditions) if conditions else _drawn(it, form)
        asks = acting(it, station, stdin=False, master=master, conf=spark_settings(conf))
        with nullcontext() if scope == "local" else output.progress("asking nodes") as progress:
            if count and into is None:
                seq, number = asks.numbered_count(type, sought, scope=scope, timeout=timeout, progress=progress)
                output.answer({"seq": seq, "count": number}, str(number))
                return
            answer = asks.query(type, sought, scope=scope, into=into, timeout=timeout, progress=progress)
    if count:
        output.answer({"seq": answer.seq, "count": len(answer)}, str(len(answer)))
    else:
        _show(answer)
    tell_damaged(answer)
    if into is not None:
        output.note(f"{len(answer)} saved as {into}; query them with: postroom sql")


def _drawn(it: Postroom, form: Form) -> dict[str, str]:
    from postroom.stations.queries.conditions import drawn

    conditions, heading = drawn(form, standard_input() or "", STANDARD_INPUT)
    check_heading(it, form, heading)
    return conditions


def _conditions(words: list[str]) -> dict[str, str]:
    conditions: dict[str, str] = {}
    for word in words:
        match = _CONDITION.fullmatch(word)
        if match is None:
            raise ArgumentInvalid(argument="FIELD=CONDITION", why=f"{word!r} is not a field with a condition")
        enter(conditions, match["field"].strip(), match["condition"])
    return conditions


def _show(answer: Answer) -> None:
    if settings.json:
        output.as_json(answer.as_dict())
    elif answer:
        output.table(["key", "place", "fields"], [(image.key, image.place, summary(image)) for image in answer])
    else:
        output.note("no message found")


@table_app.command("list")
def table_list(station: StationOption = None) -> None:
    """List the temporary tables of this station.

    \b
    Example:
      postroom table list
    """
    with opened() as it:
        tables = acting(it, station).tables()
    if settings.json:
        output.as_json({"tables": [table.as_dict() for table in tables]})
    elif tables:
        output.table(
            ["table", "type", "images", "query"],
            [(table.name, table.type, table.images, table.query or "local") for table in tables],
        )
    else:
        output.note("none; make one with: postroom query TYPE --into NAME")


@table_app.command("show")
def table_show(
    name: TableArgument,
    station: StationOption = None,
) -> None:
    """Show a temporary table: messages as they were when they were found.

    \b
    Example:
      postroom table show fees
    """
    with opened() as it:
        _show(acting(it, station).table(name))


@table_app.command("drop")
def table_drop(
    name: TableArgument,
    station: StationOption = None,
) -> None:
    """Drop a temporary table; the messages are not affected.

    \b
    Example:
      postroom table drop fees
    """
    with opened() as it:
        acting(it, station).drop_table(name)
    output.answer({"table": name}, f"dropped {name}")


def sql(
    statement: Annotated[str, argument("STATEMENT", "Spark SQL, beginning with SELECT.")],
    timeout: Annotated[float, option("--timeout SECONDS", "Time limit.", show_default=True)] = SQL_SECONDS,
    station: StationOption = None,
) -> None:
    """Query the temporary tables of this station in SQL.

    It runs on this machine, with a Spark of its own, which Ctrl-C ends. Columns are key, place, and the fields of
    the type, with _ for blanks.

    \b
    Examples:
      postroom sql 'SELECT * FROM fees ORDER BY Fee'
      postroom sql 'SELECT Payer, sum(Fee) FROM fees GROUP BY Payer'
    """
    with opened() as it:
        asks = acting(it, station)
        with output.progress("asking tables") as progress:
            answer = asks.sql(statement, timeout=timeout, progress=progress).as_dict()
    if settings.json:
        output.as_json(answer)
    else:
        output.table(answer["columns"], [[_cell(cell) for cell in row] for row in answer["rows"]])


def _cell(cell: Any) -> Any:
    if isinstance(cell, bool):
        return "true" if cell else "false"
    return ", ".join(str(_cell(item)) for item in cell) if isinstance(cell, list) else cell
