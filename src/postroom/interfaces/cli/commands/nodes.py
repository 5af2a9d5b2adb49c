"""Commands on a network: node …, station …, login, logout."""

from __future__ import annotations

from typing import Annotated

from postroom.errors import ArgumentInvalid, StationUnknown
from postroom.interfaces.cli import logins, output
from postroom.interfaces.cli.context import Commands, argument, new_password, opened, option, password_source, settings
from postroom.limits import LOGIN_SECONDS
from postroom.model.definitions import nearest

node_app = Commands(help="Stores of stations: the nodes of the network.")
station_app = Commands(help="Stations: add, list, remove.")

NodeArgument = Annotated[str, argument("NAME", "Letters, digits and _.")]
UrlArgument = Annotated[str, argument("URL", "A SQLite path or a PostgreSQL URL.")]
StationArgument = Annotated[str, argument("NAME", "The name of a station.")]


@node_app.command("add")
def node_add(name: NodeArgument, url: UrlArgument) -> None:
    """Add a new store as a node of this room's network.

    Messages of the stations on it are kept there. This room is the node control: it has the list of all nodes, and
    the mailboxes.

    The URL is stored, so it has no password. The password is read from the password file of PostgreSQL (~/.pgpass) or,
    for a node named south, from $POSTROOM_NODE_south_PASSWORD.

    \b
    Examples:
      postroom node add north /data/north.db
      postroom node add south postgresql://south.example/postroom
    """
    from postroom.room.opening import resolved
    from postroom.stations.places.network import check_node

    check_node(name, url, resolved(settings.room))  # before there is a room: what is refused leaves nothing behind
    with opened(create=True) as it:
        it.stations.add_node(name, url)
    output.answer({"node": name}, f"{name} is a node")


@node_app.command("list")
def node_list() -> None:
    """List the nodes, and whether they answer.

    \b
    Example:
      postroom node list
    """
    with opened() as it:
        nodes = it.stations.nodes()
    if settings.json:
        output.as_json({"nodes": [node.as_dict() for node in nodes]})
    else:
        output.table(
            ["node", "store", "stations", "answers"],
            [(node.name, node.url, node.stations, "yes" if node.answers else f"no: {node.why}") for node in nodes],
        )


@node_app.command("move")
def node_move(name: NodeArgument, url: UrlArgument) -> None:
    """Change the address of a node's store; it must be the same store.

    \b
    Example:
      postroom node move north /mnt/new/north.db
    """
    with opened() as it:
        it.stations.move_node(name, url)
    output.answer({"node": name}, f"{name} has moved")


@node_app.command("secure")
def node_secure() -> None:
    """Move stored passwords of nodes to PostgreSQL's password file.

    Earlier versions stored the URL of a node with its password. Such a node does not answer until this is done. The
    file is $PGPASSFILE or ~/.pgpass. Backups of the room may still have the password, so change it.

    \b
    Example:
      postroom node secure
    """
    with opened() as it:
        names = it.stations.secure_nodes()
    if settings.json:
        output.as_json({"nodes": names})
    elif names:
        output.say(f"moved to the password file: {', '.join(names)}")
    else:
        output.note("no node's password is stored here")


@node_app.command("remove")
def node_remove(
    name: NodeArgument,
    force: Annotated[bool, option("--force", "Even if the node does not answer.")] = False,
) -> None:
    """Remove a node without stations from the network.

    \b
    Examples:
      postroom node remove north
      postroom node remove north --force
    """
    with opened() as it:
        it.stations.remove_node(name, force=force)
    output.answer({"node": name}, f"{name} is no longer a node")


@station_app.command("add")
def station_add(
    name: Annotated[str, argument("NAME", "Letters, digits and _.")],
    node: Annotated[
        str, option("--node NODE", "The node that keeps its messages; see postroom node list.", show_default=True)
    ] = "control",
) -> None:
    """Add a station on a node.

    Its password is read from $POSTROOM_PASSWORD, the terminal or standard input. If the name is registered already, its
    current password is required.

    \b
    Examples:
      postroom station add Dennis
      postroom station add Simon --node north
    """
    with opened(create=True) as it:
        prompt = f"password of {name}"
        password = password_source(prompt)() if name in it.flows.principals() else new_password(prompt)
        it.stations.add(name, password, node)
    output.answer({"station": name, "node": node}, f"{name} is a station on node {node}")


@station_app.command("list")
def station_list() -> None:
    """List the stations and their nodes.

    \b
    Example:
      postroom station list
    """
    with opened() as it:
        stations = it.stations.all()
    if settings.json:
        output.as_json({"stations": [{"name": name, "node": node} for name, node in stations.items()]})
    elif stations:
        output.table(["station", "node"], stations.items())
    else:
        output.note("none; make one with: postroom station add NAME")


@station_app.command("remove")
def station_remove(name: StationArgument) -> None:
    """Remove a station that has neither messages nor mail.

    Its name stays registered; remove it with: postroom principal remove NAME

    \b
    Example:
      postroom station remove Simon
    """
    with opened() as it:
        it.stations.remove(name)
    output.answer({"station": name}, f"{name} is no longer a station")


def login(
    station: Annotated[str, argument("STATION", "The name of a station.")],
) -> None:
    """Act for a station from now on, without --as.

    Lasts for 12 hours, or until logout. The login token is kept in $XDG_STATE_HOME/postroom/logins.json, by default
    below ~/.local/state, and only you can read it.

    \b
    Example:
      postroom login Dennis
    """
    with opened() as it:
        known = it.stations.all()
        if station not in known:
            raise StationUnknown(station=station, nearest=nearest(station, known))
        before = logins.login_at(it.url)
        made = logins.Login(station, it.stations.login(station, password_source(f"password of {station}")()))
        try:
            logins.keep(it.url, made)
        except ArgumentInvalid:  # a login that nobody can use
            it.stations.logout(*made)
            raise
        if before is not None:
            it.stations.logout(*before)
    output.answer({"station": station}, f"{station} is logged in for {LOGIN_SECONDS / 3600:.0f} hours")


def logout() -> None:
    """End the login at this room.

    \b
    Example:
      postroom logout
    """
    with opened() as it:
        login = logins.login_at(it.url)
        if login is not None:
            it.stations.logout(*login)
            logins.forget(it.url)
    if settings.json:
        output.as_json({"station": login.station if login else None})
    elif login is not None:
        output.say(f"{login.station} is logged out")
    else:
        output.note("nobody is logged in here")
