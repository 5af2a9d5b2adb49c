"""The command that lets others in: serve."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

from postroom.errors import ArgumentInvalid, NotRemote, PostroomError
from postroom.interfaces.cli import output
from postroom.interfaces.cli.context import ConfOption, MasterOption, option, settings, spark_settings
from postroom.interfaces.cli.lasting import Lasting
from postroom.limits import USER_REQUESTS_PER_SECOND

if TYPE_CHECKING:
    from postroom.interfaces.http.server import Listening
    from postroom.room import Postroom


def serve(
    host: Annotated[str, option("--host ADDRESS", "The address to listen on.", show_default=True)] = "127.0.0.1",
    port: Annotated[
        int, option("--port N", "The port; 0 for any free one.", min=0, max=65535, show_default=True)
    ] = 7600,
    stomp: Annotated[int | None, option("--stomp N", "Speak STOMP 1.2, too.", min=0, max=65535)] = None,
    session: Annotated[str | None, option("--session FILE", "A Unix socket for COBOL and C programs, too.")] = None,
    run: Annotated[bool, option("--run", "Be the engine, too, as postroom run.")] = False,
    tls_certificate: Annotated[str | None, option("--tls-certificate FILE", "PEM; with --tls-key.")] = None,
    tls_key: Annotated[str | None, option("--tls-key FILE", "The key of the certificate.")] = None,
    rate: Annotated[
        float,
        option("--rate N", "Requests of a user per second; twice as many at once.", min=1, show_default=True),
    ] = USER_REQUESTS_PER_SECOND,
    log: Annotated[str, option("--log FORMAT", "text, or json: a line for every request.", show_default=True)] = "text",
    master: MasterOption = "local[*]",
    conf: ConfOption = None,
) -> None:
    """Serve the room to other programs and machines.

    They need the URL and a token: postroom token create. What a user may do says postroom grant. An address that other
    machines can reach needs a certificate, and a user with a grant. SIGTERM or Ctrl-C lets requests finish, and stops.

    \b
    Examples:
      postroom serve
      postroom serve --run --port 7601
      postroom serve --stomp 61613
      postroom serve --session /run/postroom/session
      postroom serve --host 0.0.0.0 --tls-certificate room.pem --tls-key room.key
    """
    from postroom.interfaces.http.observing.logs import FORMATS
    from postroom.interfaces.http.server import Listening, serve
    from postroom.queues.leases.returning import take_back
    from postroom.room import open as open_room

    if log not in FORMATS:
        raise ArgumentInvalid(argument="--log", why=f"{' or '.join(FORMATS)}, not {log!r}")
    url = _served(settings.room)
    if not run and (conf or master != "local[*]"):
        raise ArgumentInvalid(argument="--master", why="it is for the engine: give --run, too")
    os.umask(0o077)  # what the server makes is the server's own
    places = _Places(Listening(host, port, tls_certificate, tls_key), stomp, session)

    def work(room: Postroom) -> None:
        if places.told:  # the room was opened again: nobody has what was received before
            take_back(room.store)
        with ExitStack() as stack:
            beside = _beside(stack, room, places)
            stack.enter_context(_engine(url, run, master, spark_settings(conf)))
            listening = partial(_listening, places, beside)
            places.is_left |= not serve(room, places.http, listening, rate, log, list(beside.values()))

    Lasting(partial(open_room, url)).run(work)
    if places.is_left:
        _leave()


def _served(room: str | None) -> str:
    """The URL of the room to serve."""
    from postroom.room.opening import resolved

    url = resolved(room)
    if url.startswith(("http://", "https://")):
        raise NotRemote(what="serving a room that is served already")
    return url


def _leave() -> NoReturn:
    """Exit although a request is running. The interpreter would wait for its thread; the room is closed."""
    sys.stdout.flush()
    os._exit(0)  # Java ends with its input


@dataclass
class _Places:
    """The addresses that it listens at; random free ports are kept when the room is reopened."""

    http: Listening
    stomp: int | None
    session: str | None
    told: bool = False
    is_left: bool = False  # whether a request goes on in a thread


def _beside(stack: ExitStack, room: Postroom, places: _Places) -> dict[str, Any]:
    """The other servers by name; their sockets are opened before anything starts."""
    from postroom.interfaces.cobol.sessions import SessionServer
    from postroom.interfaces.http.server import bound, check
    from postroom.interfaces.stomp.server import StompServer

    check(room, places.http)
    beside: dict[str, Any] = {}
    if places.stomp is not None:
        listener = stack.enter_context(bound(replace(places.http, port=places.stomp), "--stomp"))
        places.stomp = listener.getsockname()[1]
        beside["stomp"] = StompServer(listener, places.http)
    if places.session is not None:
        beside["session"] = stack.enter_context(SessionServer(places.session))
    return beside


def _listening(places: _Places, beside: Mapping[str, Any], url: str) -> None:
    if places.told:
        return
    places.told = True
    places.http = replace(places.http, port=int(url.rpartition(":")[2]))
    others = {name: server.url for name, server in beside.items()}
    if settings.json:
        output.as_json({"url": url, **others})
    else:
        output.say(f"listening on {url}")
        for other in others.values():
            output.say(f"listening on {other}")
    sys.stdout.flush()


@contextmanager
def _engine(url: str, wanted: bool, master: str, conf: dict[str, str]) -> Iterator[None]:
    """The engine in a thread with its own connection; after the server has stopped it finishes its step."""
    if not wanted:
        yield
        return
    from postroom.room import open as open_room

    lasting = Lasting(partial(open_room, url), lambda room: room.stop())

    def run() -> None:
        """Run the engine. If it fails, the server goes on and logs it; doctor and top show that no engine runs."""
        try:
            lasting.run(lambda room: room.run(master=master, conf=conf))
        except PostroomError as error:
            output.failure(error)

    thread = threading.Thread(target=run, name="postroom-engine")
    thread.start()
    try:
        yield
    finally:
        lasting.finish()
        thread.join()
