"""Commands on counters, where queues and stations meet: counter …"""

from __future__ import annotations

from typing import Annotated

from postroom.errors import DefinitionUnknown
from postroom.interfaces.cli import output
from postroom.interfaces.cli.context import Commands, argument, opened, settings
from postroom.model.definitions import nearest

counter_app = Commands(help="Counters turn messages of queues into mail, or back.")

CounterArgument = Annotated[str, argument("NAME", "The name of a counter.")]


@counter_app.command("list")
def counter_list() -> None:
    """List the counters: station, direction, waiting messages, and why if none move.

    \b
    Example:
      postroom counter list
    """
    with opened() as it:
        counters = [counter.as_dict() for counter in it.stations.counters()]
    if settings.json:
        output.as_json({"counters": counters})
    elif counters:
        names = ["name", "station", "way", "type", "queue", "waiting_count", "state"]
        output.table(
            ["counter", "station", "way", "type", "queue", "waiting", "state"],
            [["" if counter[name] is None else counter[name] for name in names] for counter in counters],
        )
    else:
        output.note("none; load some with: postroom load FILE.form")


@counter_app.command("show")
def counter_show(name: CounterArgument) -> None:
    """Show one counter: what it does, where it is defined, how many messages wait.

    \b
    Example:
      postroom counter show north
    """
    with opened() as it:
        known = {counter.name: counter for counter in it.stations.counters()}
    if name not in known:
        raise DefinitionUnknown(name=f"counter {name}", nearest=nearest(name, known))
    told = known[name]
    if settings.json:
        output.as_json(told.as_dict())
        return
    output.say(str(told))
    output.say(f"written: {told.where}, since version {told.since}")
    output.say(f"waiting: {told.waiting} message(s)")
    output.say(f"state:   {told.state}")


@counter_app.command("remove")
def counter_remove(name: CounterArgument) -> None:
    """Close a counter; messages stay where they are.

    \b
    Example:
      postroom counter remove north
    """
    with opened() as it:
        it.stations.remove_counter(name)
    output.answer({"counter": name}, f"removed {name}")
