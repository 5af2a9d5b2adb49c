"""Commands on rule programs: catalog, explain, try, collection; and on what they keep: slice, why."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from postroom.errors import ArgumentInvalid, DefinitionUnknown
from postroom.interfaces.cli import output
from postroom.interfaces.cli.commands import procedures
from postroom.interfaces.cli.context import Commands, KeyArgument, argument, opened, option, settings
from postroom.limits import TRY_SECONDS
from postroom.model.definitions import nearest
from postroom.model.moment import to_iso
from postroom.model.paths import printable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from postroom.flows.graph.inspection import ArcExplained
    from postroom.room import Postroom
    from postroom.room.catalog import CatalogEntry
    from postroom.rules.inspection import Explanation
    from postroom.stations.procedures.inspection import ProcedureExplained

collection_app = Commands(help="Master data that rules read.")


def catalog(
    name: Annotated[str | None, argument("[NAME]", "Only this definition.")] = None,
    write: Annotated[str | None, option("--write DIR", "Write the definitions to files in a new directory.")] = None,
) -> None:
    """List all definitions, with file and line.

    With --write, the definitions in force are written to files. Loaded together into another room, they define the
    same. Documents of collections, and what was added to a graph at run time, are not written.

    \b
    Examples:
      postroom catalog
      postroom catalog joinOrder
      postroom catalog trading:capital
      postroom catalog --write definitions
    """
    if write is not None:
        _write(Path(write))
        return
    with opened() as it:
        entries = it.definitions.catalog()
    if name is not None:
        entries = _of_name(entries, name)
    if settings.json:
        output.as_json({"definitions": [entry.as_dict() for entry in entries]})
    elif entries:
        output.table(
            ["what", "name", "where", "version", "since", "by"],
            [(entry.what, entry.name, entry.where, entry.version, entry.since, entry.by) for entry in entries],
        )
        if name is not None:
            for entry in entries:
                for field, value in entry.definition.items():
                    text = value["text"] if isinstance(value, dict) and "text" in value else value
                    output.say(f"{field}: {text}")
    else:
        output.note("nothing is defined yet; load definitions with: postroom load FILE")


def _of_name(entries: list[CatalogEntry], name: str) -> list[CatalogEntry]:
    """The definitions with a name, from all domains; or one arc by domain and name, such as trading:big."""
    *domains, arc = name.split(":")
    halves = {f"{arc} in {domain}" for domain in domains}
    named = [
        entry
        for entry in entries
        if entry.name == name or entry.name.startswith(f"{name} in ") or (entry.what == "arc" and entry.name in halves)
    ]
    if not named:
        raise DefinitionUnknown(name=f"definition {name}", nearest=nearest(name, [entry.name for entry in entries]))
    return named


def _write(folder: Path) -> None:
    with opened() as it:
        files = it.definitions.files()
    try:
        folder.mkdir()
        for name, text in files.items():
            (folder / name).write_bytes(text)
    except OSError as error:
        raise ArgumentInvalid(argument="--write", why=f"{printable(folder)}: {error.strerror}") from None
    output.answer(
        {"files": sorted(files)}, "\n".join(printable(folder / name) for name in sorted(files)) or "nothing is defined"
    )


def explain(
    name: Annotated[str, argument("NAME", "The name of a rule, an arc or a procedure.")],
    plan: Annotated[bool, option("--plan/--no-plan", "Start Spark and show its plan too.", show_default=True)] = True,
) -> None:
    """Show how a rule, an arc or a procedure is executed.

    For a rule: what it watches, reads and writes, and the query. For an arc: its types, the names its pattern binds,
    its condition and result in Spark SQL. For both also Spark's plan, for which Spark is started; --no-plan leaves it
    out. For a procedure: its sketches, how they are joined, how partners are searched for, the order of its actions;
    this needs no Spark.

    \b
    Examples:
      postroom explain joinOrder
      postroom explain capital --no-plan
      postroom explain trading:capital --no-plan
      postroom explain holiday
    """
    from postroom.flows.graph.inspection import ArcExplained
    from postroom.stations.procedures.inspection import ProcedureExplained

    with opened() as it:
        told = _explained(it, name)
        if isinstance(told, ProcedureExplained):
            output.as_json(told.as_dict()) if settings.json else procedures.say_explained(told)
            return
        space = told.source if isinstance(told, ArcExplained) else None
        if settings.json:
            output.as_json({**told.as_dict(), **({"spark_plan": it.definitions.spark_plan(space)} if plan else {})})
            return
        _say_arc(told) if isinstance(told, ArcExplained) else _say_explained(told)
        if plan:
            sys.stdout.flush()  # what is known already, while Spark starts
            output.say(f"\nSpark plan:\n{it.definitions.spark_plan(space)}")


def _explained(it: Postroom, name: str) -> Explanation | ArcExplained | ProcedureExplained:
    """What a name refers to; first an arc, then a rule."""
    close = ""
    for explained in (it.definitions.explain_arc, it.definitions.explain, it.definitions.explain_procedure):
        try:
            return explained(name)
        except DefinitionUnknown as error:
            close = close or error.facts["nearest"]
    raise DefinitionUnknown(name=f"rule, arc or procedure {name}", nearest=close)


def _say_arc(told: ArcExplained) -> None:
    output.say(f"{told.definition} ({told.where})")
    output.say(f"domain: {' and '.join(told.domains)}; {told.state}")
    output.say(f"from {told.source} : {told.source_type}")
    output.say(f"to {told.target} : {told.target_type}")
    output.say(f"binds: {', '.join(f'{name}: {type}' for name, type in told.binds.items()) or 'nothing'}")
    output.say(f"matched by: {told.matched_by}")
    output.say(f"condition: {told.condition}")
    if told.result is not None:
        output.say(f"result: {told.result}")


def _say_explained(told: Explanation) -> None:
    output.say(f"rule {told.rule} ({told.where}) for {told.target}")
    for word, names in (
        ("watches", told.watches),
        ("reads", told.reads),
        ("writes", told.writes),
        ("resets", told.resets),
        ("errors go to", told.error_queues),
    ):
        output.say(f"{word}: {', '.join(names) or 'nothing'}")
    output.say(f"\nas written:\n{told.definition}")
    for queue, query in told.queries.items():
        output.say(f"\nquery for messages of {queue} (all rules of the queue):\n{query}")


def slice(
    slicing: Annotated[str, argument("SLICING", "The name of a slicing.")],
    key: Annotated[str, argument("KEY", "The slice key: a property's value.")],
) -> None:
    """List the messages of a slice's current lifetime.

    \b
    Example:
      postroom slice requestMsgs 17
    """
    with opened() as it:
        messages = it.journal.slice(slicing, key)
    if settings.json:
        output.as_json({"messages": [message.as_dict() for message in messages]})
    elif messages:
        output.table(
            ["key", "queue", "processed at", "body"],
            [
                (message.key, message.queue, to_iso(message.processed) if message.processed else "", message.body)
                for message in messages
            ],
        )
    else:
        output.note(f"the slice {key} of {slicing} is empty")


def why(key: KeyArgument) -> None:
    """Say which slices keep a message from being deleted.

    \b
    Example:
      postroom why 00001.00042
    """
    with opened() as it:
        held = it.journal.why(key)
    if settings.json:
        output.as_json(held.as_dict())
        return
    for slicing, value in held.held_by:
        output.say(f"held by slice {value} of {slicing}, until a rule resets it")
    if held.corrupt:
        output.say(output.damaged(held.key))
    elif held.hold:
        output.say(f"waits in {held.queue}: {output.on_hold(held.hold)}")
    elif not held.processed:
        output.say(f"waits in {held.queue} to be processed")
    elif held.keeps:
        output.say(f"{held.queue} keeps its processed messages; change that with: postroom queue mode")
    elif held.answers:
        output.say("it answers a request, which may ask for it for a day")
    elif not held.held_by:
        output.say("nothing holds it: the next sweep removes it (postroom sweep)")


def try_(
    files: Annotated[
        list[str],
        typer.Argument(
            help="Programs, graphs, procedures, counters to try (.demaq, .flow, .form).", show_default=False
        ),
    ],
    since: Annotated[str | None, option("--since T", "Only messages from this time on (ISO 8601).")] = None,
    timeout: Annotated[
        float, option("--timeout SECONDS", "Time limit for arcs.", min=0.1, show_default=True)
    ] = TRY_SECONDS,
) -> None:
    """Dry run: show what proposed definitions would do.

    Evaluates rules, arcs, procedures or counters on the stored messages.

    Nothing is changed. Arcs and procedures are tried on Spark, which is started for it. For procedures, it shows the
    working sets that would be complete with the messages of their stations, each by the message that completes it.
    Counters are tried on the messages that wait for them.

    \b
    Examples:
      postroom try proposed.demaq
      postroom try proposed.flow
      postroom try proposed.form
      postroom try proposed.demaq --since 2026-11-01T00:00:00Z
    """
    from postroom.stations.procedures.tryout import Handled

    with opened() as it:
        trial = it.definitions.try_out(*files, since=None if since is None else _moment(since), timeout=timeout)
        if settings.json:
            output.as_json({"tried": [outcome.as_dict() for outcome in trial]})
            return
        messages, sets = 0, 0
        for outcome in trial:
            is_set = isinstance(outcome, Handled)
            messages, sets = messages + (not is_set), sets + is_set
            actions = outcome.as_dict()["actions"]
            output.say(f"{outcome.key} in {outcome.queue}: {'' if actions else 'nothing'}".rstrip())
            for action in actions:
                procedures.say_action(action) if is_set else _say_action(action)
    told = [f"{messages} message(s) tried"] if messages or not sets else []
    told += [f"{sets} working set(s) would be complete"] if sets or not messages else []
    output.note(f"{', '.join(told)}; nothing was changed")


def _say_action(action: Mapping[str, Any]) -> None:
    goal = action.get("queue") or f"{action['slicing']} key {action['slicekey']}"
    body = f": {output.excerpt(action['body'])}" if "body" in action else ""
    output.say(f"  {action['rule']}: {action['action']} {goal}{body}")


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ArgumentInvalid(argument="--since", why="a time such as 2026-11-01T00:00:00Z") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


@collection_app.command("load")
def collection_load(
    name: Annotated[str, argument("NAME", "The name of a collection.")],
    files: Annotated[list[str], typer.Argument(help="XML documents.", show_default=False)],
) -> None:
    """Replace the documents of a collection; rules read them by collection("NAME").

    \b
    Example:
      postroom collection load crm pricelist.xml
    """
    with opened() as it:
        version = it.definitions.load_collection(name, *files)
    output.answer(
        {"version": version, "document_count": len(files)}, f"version {version}: {len(files)} document(s) in {name}"
    )
