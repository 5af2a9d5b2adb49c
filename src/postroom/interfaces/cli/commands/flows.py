"""Commands on flows: publish, subscribe, connect, graph; and on principals."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from postroom.errors import ArgumentInvalid, FileUnreadable
from postroom.interfaces.cli import output
from postroom.interfaces.cli.commands import receiving
from postroom.interfaces.cli.context import Commands, argument, new_password, opened, option, password_source, settings
from postroom.model.paths import why_unread

if TYPE_CHECKING:
    from postroom.flows.clients import Subscription
    from postroom.flows.graph.inspection import ArcShown, GraphShown, SpaceShown
    from postroom.room import Postroom
    from postroom.room.client import Client

principal_app = Commands(help="Names that policies of domains give rights to.")

SpaceArgument = Annotated[str, argument("SPACE", "The name of a space.")]
BrokerOption = Annotated[
    str | None, option("--broker NAME", "Where the client is connected. Default: $POSTROOM_BROKER, else this machine.")
]
ClientOption = Annotated[str, option("--as CLIENT", "The client's name: also that of its space.")]


def publish(
    space: SpaceArgument,
    event: Annotated[
        str | None,
        argument("[EVENT]", "A Gryphon literal or JSON; else a line each from --file or stdin.", show_default=True),
    ] = None,
    file: Annotated[str | None, option("--file FILE", "Publish every line of a file.")] = None,
    name: Annotated[str | None, option("--as NAME", "Who publishes. Default: you.")] = None,
    idempotency_key: Annotated[
        str | None, option("--idempotency-key TEXT", "Makes a retry safe: the same key publishes once.")
    ] = None,
    broker: BrokerOption = None,
) -> None:
    """Publish an event in a space.

    An event that does not fit the space's type is refused. Many lines are published in one commit, all or none. In a
    meta-space, meta:DOMAIN, an event that the domain's policy allows changes the graph; its principal and broker need
    not be written. A registered name asks for its password: $POSTROOM_PASSWORD, the terminal, or standard input.

    \b
    Examples:
      postroom publish NYSE '["IBM", 80, 1000]'
      postroom publish NYSE '{"issue": "HP", "price": 20, "volume": 300}'
      postroom publish NYSE --file trades.txt
      postroom publish meta:trading 'DisableArc: ["big"]' --as operator
    """
    if event is not None and file is not None:
        raise ArgumentInvalid(argument="--file", why="give an event or a file, not both")
    lines = None if event is not None else _lines(file)
    with opened() as it:
        client = None if name is None else _client(it, name, broker)
        if event is not None:
            one = (client or it).publish(space, event, idempotency_key=idempotency_key)
            output.answer(one.as_dict(), one.key)
            return
        if idempotency_key is not None:
            raise ArgumentInvalid(argument="--idempotency-key", why="it goes with one event, not with many")
        many = (client or it.flows).publish_many(space, lines or [])
    output.answer(many.as_dict(), f"{len(many.keys)} event(s) published")


def subscribe(
    space: SpaceArgument,
    client: ClientOption,
    pattern: Annotated[str | None, argument("[PATTERN]", "Only what matches, such as [price: p > 75].")] = None,
    durable: Annotated[bool, option("--durable", "Keep events that arrive while disconnected.")] = False,
    broker: BrokerOption = None,
) -> None:
    """Subscribe a client to the events of a space.

    From now on, its events, or those that match a pattern, are delivered to the client's own space.

    Adds the client's space, if it has none yet, and a select arc to it. Read it with: postroom receive CLIENT

    \b
    Examples:
      postroom subscribe NYSE '[price: p > 75]' --as desk
      postroom subscribe meta:trading --as watcher
      postroom subscribe NYSE --as archive --durable
    """
    with opened() as it:
        was_stored = _is_stored(it.flows.graph(), space)
        made = _client(it, client, broker).subscribe(space, pattern, durable=durable)
        turned = was_stored and not _is_stored(it.flows.graph(), space)
    if settings.json:
        output.as_json(made.as_dict())
        return
    durably = " durable" if made.durable else ""
    output.say(f"arc {made.arc} : {made.space} -> {made.client} select {made.pattern}{durably}")
    if turned:
        output.note(f"{space} now passes its events on: subscribe to get them, or declare it with retain")


def _is_stored(graph: GraphShown, name: str) -> bool:
    """Whether arcs lead to a space and its events stay there."""
    fed = any(arc.target == name for arc in graph.arcs)
    return fed and any(space.name == name and space.stored for space in graph.spaces)


def unsubscribe(
    client: ClientOption,
    space: Annotated[str | None, argument("[SPACE]", "Only from this space.")] = None,
    broker: BrokerOption = None,
) -> None:
    """End a client's subscriptions.

    With the last subscription, its space is removed; unread events can still be read with: postroom peek CLIENT

    \b
    Examples:
      postroom unsubscribe --as desk
      postroom unsubscribe NYSE --as desk
    """
    with opened() as it:
        _say(_client(it, client, broker).unsubscribe(space), "unsubscribed")


def connect(
    client: ClientOption,
    broker: BrokerOption = None,
    follow: Annotated[bool, option("--follow", "Print events until Ctrl-C; then, or when killed, disconnect.")] = False,
) -> None:
    """Enable a client's arcs.

    Durable subscriptions deliver the events that they kept.

    \b
    Examples:
      postroom connect --as desk --broker zurich
      postroom connect --as desk --follow
    """
    with opened() as it:
        connected = _client(it, client, broker)
        if not follow:
            _say(connected.connect(), "connected")
            return
        with connected.present():
            receiving.follow_queue(it, [client], None)


def disconnect(
    client: ClientOption,
    broker: BrokerOption = None,
) -> None:
    """Disable a client's arcs, until it connects again.

    \b
    Example:
      postroom disconnect --as desk
    """
    with opened() as it:
        _say(_client(it, client, broker).disconnect(), "disconnected")


def subscriptions() -> None:
    """List subscriptions.

    \b
    Example:
      postroom subscriptions
    """
    with opened() as it:
        known = it.flows.subscriptions()
    if settings.json:
        output.as_json({"subscriptions": [subscription.as_dict() for subscription in known]})
    elif known:
        output.table(
            ["client", "space", "pattern", "durable", "connected"],
            [
                (
                    subscription.client,
                    subscription.space,
                    subscription.pattern,
                    _yes(subscription.durable),
                    _yes(subscription.connected),
                )
                for subscription in known
            ],
        )
    else:
        output.note("there are no subscriptions; make one with: postroom subscribe SPACE --as CLIENT")


def graph(
    mermaid: Annotated[str | None, option("--mermaid FILE", "Write it as a Mermaid flowchart.")] = None,
) -> None:
    """Show the flow graph: domains, spaces, arcs and tables.

    A Mermaid flowchart is text. Markdown pages, wikis and code hosts show it as a picture.

    \b
    Examples:
      postroom graph
      postroom graph --mermaid graph.mmd
    """
    with opened() as it:
        shown = it.flows.graph()
    if mermaid is not None:
        _draw(shown, Path(mermaid))
    if settings.json:
        output.as_json(shown.as_dict())
    elif mermaid is not None:
        output.say(f"{mermaid}: {len(shown.spaces)} spaces, {len(shown.arcs)} arcs, {len(shown.tables)} tables")
    elif shown.domains:
        for domain in shown.domains:
            _say_domain(shown, domain)
    else:
        output.note("there is no graph yet; load one with: postroom load FILE.flow")


def _draw(graph: GraphShown, file: Path) -> None:
    from postroom.exchange.output_file import refuse_room
    from postroom.flows.graph.drawing import mermaid

    refuse_room(file)
    try:
        file.write_text(mermaid(graph), encoding="utf-8")
    except OSError as error:
        raise ArgumentInvalid(argument="--mermaid", why=f"cannot write {file}: {error.strerror or error}") from None


def _say_domain(graph: GraphShown, domain: str) -> None:
    output.say(f"domain {domain}")
    for principal, actions in graph.domains[domain].items():
        output.say(f"  allow {principal} : {', '.join(actions)}")
    for space in graph.spaces:
        if space.domain == domain:
            output.say(f"  {_space(space)}")
            for arc in graph.arcs:
                if arc.source == space.name:
                    output.say(f"    {_arc(arc)}")
    for table in graph.tables:
        if table.domain == domain:
            output.say(f"  table {table.name} : {table.type} from {table.source}, {table.rows} rows")


def _space(space: SpaceShown) -> str:
    word = "client" if space.client else "space"
    retain = " retain" if space.retain else ""
    waiting = f"  ({space.waiting} waiting)" if space.waiting else ""
    kind = "the meta-space" if space.name.startswith("meta:") else f"{space.type}{retain}"
    return f"{word} {space.name} : {kind}{waiting}"


def _arc(arc: ArcShown) -> str:
    state = "" if arc.state == "enabled" else f"  ({arc.state})"
    kept = f"  ({arc.kept} kept)" if arc.kept else ""
    return f"-> {arc.target}  {arc.name}: {arc.does}{' durable' if arc.durable else ''}{state}{kept}"


@principal_app.command("add")
def principal_add(
    name: Annotated[str, argument("NAME", "Letters, digits and _.")],
    token: Annotated[bool, option("--token", "Create a token instead of a password, and print it.")] = False,
    replace: Annotated[
        bool, option("--replace", "As the operator: change a password without the current one.")
    ] = False,
) -> None:
    """Register a principal, or change its password.

    The password comes from $POSTROOM_PASSWORD, the terminal or standard input. Only a hash of it is kept. A token is
    used like a password. If the name is registered, its current password is asked for first; on standard input: one
    line with the current one, then the new one.

    \b
    Examples:
      postroom principal add operator
      postroom principal add service --token
      postroom principal add operator --replace
    """
    with opened(create=True) as it:
        known = name in it.flows.principals()
        old = password_source(f"current password of {name}")() if known and not replace else None
        password = None if token else new_password(f"password of {name}")
        made = it.flows.add_principal(name, password, old=old, replace=replace)
    output.answer(
        {"principal": name, "token": made},
        made or (f"the password of {name} was changed" if known else f"{name} is registered"),
    )


@principal_app.command("list")
def principal_list() -> None:
    """List the principals.

    \b
    Example:
      postroom principal list
    """
    with opened() as it:
        names = it.flows.principals()
    if settings.json:
        output.as_json({"principals": names})
    else:
        output.say("\n".join(names)) if names else output.note("none; register one with: postroom user add NAME")


@principal_app.command("remove")
def principal_remove(
    name: Annotated[str, argument("NAME")],
) -> None:
    """Remove a principal; permissions given to its name then apply to nobody.

    \b
    Example:
      postroom principal remove operator
    """
    with opened() as it:
        it.flows.remove_principal(name)
    output.answer({}, f"{name} is no longer registered")


def _client(it: Postroom, name: str, broker: str | None) -> Client:
    """The client of a command; a registered name needs its password, or a server the token of its user."""
    from postroom.interfaces.opening import is_served

    if is_served(it.url):
        return it.client(name, broker=broker)
    password = password_source(f"password of {name}")() if name in it.flows.principals() else None
    return it.client(name, password, broker=broker)


def _lines(file: str | None) -> list[str]:
    try:
        if file is not None:
            data = Path(file).read_bytes()
        elif sys.stdin is None or sys.stdin.isatty():
            raise ArgumentInvalid(argument="EVENT", why="give an event, a --file, or lines on standard input")
        else:
            data = sys.stdin.buffer.read()
        return [line for line in data.decode().splitlines() if line.strip()]
    except OSError as error:
        raise FileUnreadable(file=str(file), why=why_unread(file or "", error)) from None
    except UnicodeDecodeError as error:
        raise FileUnreadable(file=file or "standard input", why=f"byte {error.start + 1} is not UTF-8") from None


def _say(changed: list[Subscription], word: str) -> None:
    if settings.json:
        output.as_json({"subscriptions": [subscription.as_dict() for subscription in changed]})
        return
    for subscription in changed:
        output.say(f"{word}: arc {subscription.arc} : {subscription.space} -> {subscription.client}")


def _yes(value: bool) -> str:
    return "yes" if value else "no"
