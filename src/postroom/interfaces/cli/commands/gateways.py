"""Commands on gateways: gateway add, list, test, remove, listen."""

from __future__ import annotations

from typing import Annotated

from postroom.errors import ArgumentInvalid
from postroom.interfaces.cli import output
from postroom.interfaces.cli.context import Commands, argument, opened, option, settings

gateway_app = Commands(help="Gateways: the endpoints of partners.")

NameArgument = Annotated[str, argument("NAME", "The name of the gateway.")]


@gateway_app.command("add")
def gateway_add(
    name: NameArgument,
    transport: Annotated[
        str, argument("TRANSPORT", "http, smtp, soap, command or fetched; for streams files, kafka, socket or rate.")
    ],
    given: Annotated[list[str] | None, argument("SETTING=VALUE...", "See docs/guide/gateways.md.")] = None,
) -> None:
    """Add an endpoint that programs can name.

    A program says create queue QUEUE kind outgoingGateway mode persistent interface TRANSPORT port NAME. A secret is
    given as env:NAME or file:/PATH: the room stores where it is, not what it is.

    \b
    Examples:
      postroom gateway add supplier http address=https://supplier.example/orders token=env:SUPPLIER_TOKEN
      postroom gateway add orders http path=/orders in-secret=file:/etc/postroom/orders.key
      postroom gateway add printer command 'command=lp -d office'
    """
    pairs: dict[str, str] = {}
    for word in given or ():
        key, sign, value = word.partition("=")
        if not sign or key in pairs:
            what = key if sign else "SETTING=VALUE"  # not what was given: it may be a secret
            raise ArgumentInvalid(argument=what, why="a setting is written once, as SETTING=VALUE")
        pairs[key.replace("-", "_")] = value
    with opened(create=True) as it:
        made = it.gateways.add(name, transport, **pairs)
    output.answer(made.as_dict(), f"{name} is a gateway")


@gateway_app.command("list")
def gateway_list() -> None:
    """List the gateways, and the queues that use them.

    \b
    Example:
      postroom gateway list
    """
    with opened() as it:
        gateways = it.gateways.all()
    if settings.json:
        output.as_json({"gateways": gateways})
    elif gateways:
        rows = []
        for gateway in gateways:
            pairs = " ".join(f"{key}={value}" for key, value in gateway["settings"].items())
            rows.append((gateway["gateway"], gateway["transport"], ", ".join(gateway["queue_names"]), pairs))
        output.table(["gateway", "transport", "queues", "settings"], rows)
    else:
        output.note("none; make one with: postroom gateway add NAME TRANSPORT SETTING=VALUE")


@gateway_app.command("test")
def gateway_test(name: NameArgument) -> None:
    """Reach the partner of a gateway, without sending a message.

    \b
    Example:
      postroom gateway test supplier
    """
    with opened() as it:
        outcome = it.gateways.test(name)
    output.answer({"gateway": name, "answered": outcome}, outcome)


@gateway_app.command("remove")
def gateway_remove(name: NameArgument) -> None:
    """Remove a gateway that no program names.

    \b
    Example:
      postroom gateway remove supplier
    """
    with opened() as it:
        it.gateways.remove(name)
    output.answer({"gateway": name}, f"{name} is no longer a gateway")


@gateway_app.command("listen")
def gateway_listen(
    http: Annotated[str | None, option("--http HOST:PORT", "Receive messages over HTTP.", show_default=True)] = None,
    smtp: Annotated[str | None, option("--smtp HOST:PORT", "Receive mail.", show_default=True)] = None,
    certificate: Annotated[
        str | None, option("--certificate FILE", "The certificate for TLS, as PEM.", show_default=True)
    ] = None,
    key: Annotated[str | None, option("--key FILE", "The key of the certificate, as PEM.", show_default=True)] = None,
) -> None:
    """Take messages in for the gateways of the room, until stopped.

    With a certificate, HTTP is HTTPS, and mail must begin TLS. The engine (postroom run) is another process.

    \b
    Examples:
      postroom gateway listen --http 127.0.0.1:8080
      postroom gateway listen --http 0.0.0.0:443 --smtp 0.0.0.0:25 --certificate room.pem --key room.key
    """
    if http is None and smtp is None:
        raise ArgumentInvalid(argument="--http or --smtp", why="say where to listen, as HOST:PORT")
    with opened() as it:
        from postroom.gateways.listening import listen

        listen(it.gateways, _place(http), _place(smtp), certificate, key, output.note)


def _place(text: str | None) -> tuple[str, int] | None:
    if text is None:
        return None
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise ArgumentInvalid(argument=text, why="a place to listen is HOST:PORT")
    return host.strip("[]"), int(port)
