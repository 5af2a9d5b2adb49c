"""Commands on automatic procedures: procedure …, waiting; and what explain and try say of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from postroom.interfaces.cli import output
from postroom.interfaces.cli.context import Commands, argument, opened, option, settings
from postroom.limits import WAITING_MAX

if TYPE_CHECKING:
    from collections.abc import Mapping

    from postroom.stations.procedures.inspection import ProcedureExplained

procedure_app = Commands(help="Procedures: what stations do automatically.")

ProcedureArgument = Annotated[str, argument("NAME", "The name of a procedure.")]


@procedure_app.command("list")
def procedure_list() -> None:
    """List the procedures: station, state, where they are defined, since which version.

    \b
    Example:
      postroom procedure list
    """
    with opened() as it:
        procedures = [procedure.as_dict() for procedure in it.stations.procedures()]
        stations = it.stations.all()
    if settings.json:
        output.as_json({"procedures": procedures})
        return
    if not procedures:
        output.note("none; load some with: postroom load FILE.form")
        return
    names = ["name", "station", "state", "where", "version"]
    output.table(["procedure", *names[1:]], [[procedure[name] for name in names] for procedure in procedures])
    for station in dict.fromkeys(str(procedure["station"]) for procedure in procedures):
        if station not in stations:
            output.note(f"there is no station {station} yet; make it with: postroom station add {station}")


@procedure_app.command("disable")
def procedure_disable(name: ProcedureArgument) -> None:
    """Stop a procedure from running, without removing it.

    Its messages wait at the station. Loading it again does not enable it.

    \b
    Example:
      postroom procedure disable holiday
    """
    with opened() as it:
        _told(name, "disabled", it.stations.disable_procedure(name))


@procedure_app.command("enable")
def procedure_enable(name: ProcedureArgument) -> None:
    """Let a procedure run again, on all messages of its station.

    \b
    Example:
      postroom procedure enable holiday
    """
    with opened() as it:
        _told(name, "enabled", it.stations.enable_procedure(name))


@procedure_app.command("remove")
def procedure_remove(name: ProcedureArgument) -> None:
    """Remove a procedure; messages stay where they are.

    Messages that it has scheduled to be shipped later are still shipped.

    \b
    Example:
      postroom procedure remove holiday
    """
    with opened() as it:
        it.stations.remove_procedure(name)
    output.answer({"procedure": name}, f"removed {name}")


def _told(name: str, state: str, changed: bool) -> None:
    output.answer(
        {"procedure": name, "is_changed": changed},
        f"{name} is {state}" if changed else f"{name} was {state} already",
    )


def waiting(
    procedure: Annotated[str | None, argument("[PROCEDURE]", "Only sets of this procedure.")] = None,
    limit: Annotated[int, option("--limit N", "At most this many, the oldest.", show_default=True)] = WAITING_MAX,
) -> None:
    """List incomplete working sets, and what they wait for.

    Shows what each set has, what it waits for, and since when.

    This is the state at the last step of the engine; run postroom run to include later messages.

    \b
    Examples:
      postroom waiting
      postroom waiting approve --limit 20
    """
    with opened() as it:
        sets = it.stations.waiting(procedure, limit)
        picture = it.operations.overview()
    if settings.json:
        output.as_json(sets.as_dict())
        return
    if sets:
        output.table(
            ["procedure", "station", "since", "has", "waits for"],
            [
                (
                    working_set.procedure,
                    working_set.station,
                    working_set.since,
                    _has(working_set.has),
                    _wants(working_set.wants),
                )
                for working_set in sets
            ],
        )
    else:
        output.note("no working set waits")
    for node, why in sets.missing.items():
        output.note(f"node {node} does not answer, and what waits there is not shown: {why}")
    if len(sets) == limit:
        output.note(f"the oldest {limit}; see more with --limit")
    if unseen := sum(picture.lags.values()):
        do = "were not processed yet; do so with: postroom run"
        output.note(f"{unseen} message(s) {'wait for the engine, which runs' if picture.engine.works else do}")
    for queue in picture.queues:
        if queue.waits_for:
            output.note(f"{queue.name} waits: {output.on_hold(queue.waits_for)}")


def _has(messages: Mapping[str, str]) -> str:
    return ", ".join(f"{sketch} {key}" for sketch, key in messages.items())


def _wants(sketches: Mapping[str, str]) -> str:
    return "; ".join(f"{sketch}: {wanted}" for sketch, wanted in sketches.items())


# --- explain, try ---


def say_explained(told: ProcedureExplained) -> None:
    """Print how a procedure is executed."""
    output.say(f"procedure {told.procedure} at {told.station} ({told.where}); {told.state}")
    for sketch in told.sketches:
        output.say(sketch)
    output.say(f"\njoins: {', '.join(told.joins) or 'none'}")
    output.say("searches:")
    for search in told.searches:
        output.say(f"  {search}")
    output.say("order of actions:" if told.order else "order of actions: there are none")
    for number, action in enumerate(told.order, 1):
        output.say(f"  {number}. {action}")


def say_action(action: Mapping[str, Any]) -> None:
    """Print what a procedure would do with one message."""
    body = output.excerpt(action["body"])
    if action["action"] == "error":
        output.say(f"  {action['rule']}: error: {body}")
        return
    what = "a new message" if action["acts_on"] == "new" else action["acts_on"]
    goal = "" if action["action"] == "leave" else f" {action['queue']}"
    later = f" after {action['after_seconds']} s" if "after_seconds" in action else ""
    output.say(f"  {action['rule']}: {action['action']}{goal}{later}, {what}: {body}")
