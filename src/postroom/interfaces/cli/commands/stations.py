"""Commands of a station: form, create, copy, modify, list, next, mail, ship, get, dossier …"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from postroom.errors import ArgumentInvalid, FormInvalid, MessageError
from postroom.interfaces.cli import output
from postroom.interfaces.cli.context import (
    Commands,
    KeyArgument,
    LimitOption,
    argument,
    opened,
    option,
    settings,
    standard_input,
)
from postroom.interfaces.cli.logins import StationOption, acting
from postroom.model.body import parse_json
from postroom.model.definitions import Position, Problem, refuse
from postroom.model.types import FieldValue, Kind, text
from postroom.stations.forms.form import Form, Rule

if TYPE_CHECKING:
    from collections.abc import Iterable

    from postroom.room import Postroom
    from postroom.stations.forms.drawing import Piece
    from postroom.stations.queries.images import Answer, Image

dossier_app = Commands(help="Dossiers: named folders of messages at a station.")

SUMMARY_CHARS = 60
STANDARD_INPUT = "standard input"
TypeArgument = Annotated[str, argument("TYPE", "The name of a message type.")]
OptionalTypeArgument = Annotated[str | None, argument("TYPE", "Only messages of this type.")]
KeysArgument = Annotated[list[str], argument("KEY", "Message keys such as 00001.00042.")]
AfterOption = Annotated[str | None, option("--after KEY", "Only keys after this one.")]
DossierArgument = Annotated[str, argument("NAME", "The name of a dossier.")]


def form(
    type: TypeArgument,
    source: Annotated[bool, option("--source", "Print it as in a .form file.")] = False,
) -> None:
    """Print the empty form of a message type.

    Filled in, it is the standard input of create and query.

    \b
    Examples:
      postroom form 'MEETING ANNOUNCEMENT' > meeting.txt
      postroom form 'MEETING ANNOUNCEMENT' --source
    """
    with opened() as it:
        edition = it.stations.form(type)
    output.answer(edition.as_dict(), str(edition.form) if source else edition.form.shown())


def create(
    type: TypeArgument,
    fields: Annotated[list[str] | None, argument("FIELD=VALUE", "The values of the fields.")] = None,
    station: StationOption = None,
    file: Annotated[str | None, option("--file FILE", "Many messages: .jsonl, .csv or .parquet.")] = None,
) -> None:
    """Create a message by filling in a form; prints its key.

    Without FIELD=VALUE, standard input has a filled form, a JSON object, or a JSON list of objects: many messages in
    one commit, all or none. So a password is read only from $POSTROOM_PASSWORD or the terminal. With --file, each row
    of a file is a message, all of them in one commit.

    \b
    Examples:
      postroom create 'MEETING ANNOUNCEMENT' To=Simon 'Subject=office automation' --as Dennis
      postroom create 'MEETING ANNOUNCEMENT' < meeting.txt
      postroom create MEMO < memos.json
      postroom create MEMO --file memos.csv
    """
    if file is not None and fields:
        raise ArgumentInvalid(argument="--file", why="give either FIELD=VALUE or a file")
    with opened() as it:
        edition = it.stations.form(type)
        given = _rows(file) if file else _fields(fields) if fields else _message(it, edition.form, standard_input())
        acts = acting(it, station, stdin=False)
        keys = acts.create_many(type, given if isinstance(given, list) else [given])
    _say_keys(keys, {"keys": keys} if isinstance(given, list) else {"key": keys[0]})


def copy(
    key: KeyArgument,
    count: Annotated[int, argument("N", "How many copies.", show_default=True)] = 1,
    station: StationOption = None,
) -> None:
    """Make copies of a message of this station.

    Prints their keys.

    \b
    Examples:
      postroom copy 00001.00042
      postroom copy 00001.00042 3 --as Dennis
    """
    with opened() as it:
        keys = acting(it, station).copy(key, count)
    _say_keys(keys, {"keys": keys, **({"key": keys[0]} if len(keys) == 1 else {})})


def modify(
    key: KeyArgument,
    fields: Annotated[list[str], argument("FIELD=VALUE", "The new values.")],
    station: StationOption = None,
) -> None:
    """Change fields of a message here; prints the form.

    Required fields cannot be changed, nor fields of the kind "once" that have a value.

    \b
    Example:
      postroom modify 00001.00042 'Response=I shall come'
    """
    given = _fields(fields)
    with opened() as it:
        image = acting(it, station).modify(key, given)
    output.as_json(image.as_dict()) if settings.json else output.say(image.shown())


def list_(
    type: OptionalTypeArgument = None,
    after: AfterOption = None,
    limit: LimitOption = None,
    station: StationOption = None,
) -> None:
    """List the messages of this station by their keys.

    \b
    Examples:
      postroom list
      postroom list MEMO --after 00001.00042 --limit 20
    """
    with opened() as it:
        messages = acting(it, station).messages(type, after=after, limit=limit)
    _show(messages, "no message")


def next_(
    type: OptionalTypeArgument = None,
    after: AfterOption = None,
    station: StationOption = None,
) -> None:
    """Show the next message of this station.

    \b
    Examples:
      postroom next
      postroom next MEMO --after 00001.00042
    """
    with opened() as it:
        image = acting(it, station).next(after, type)
    if settings.json:
        output.as_json({"message": None if image is None else image.as_dict()})
    elif image is None:
        output.note("no message" if after is None else f"no message after {after}")
    else:
        output.say(f"{image.key}\n{image.shown()}")


def mail(station: StationOption = None) -> None:
    """List waiting mail; postroom get moves it to the station.

    \b
    Example:
      postroom mail --as Simon
    """
    with opened() as it:
        waiting = acting(it, station).mail()
    if settings.json:
        output.as_json({"mail": [{"key": message.key, "type": message.type} for message in waiting]})
    elif waiting:
        output.table(["key", "type"], [(message.key, message.type) for message in waiting])
    else:
        output.note("no mail")


def ship(
    keys: KeysArgument,
    to: Annotated[str, argument("STATION", "The station that gets them.")],
    station: StationOption = None,
) -> None:
    """Ship messages into the mailbox of another station.

    They leave this station and its dossiers. If the network is interrupted, they are delivered later.

    \b
    Examples:
      postroom ship 00001.00042 Simon
      postroom ship 00001.00042 00001.00043 Simon --as Dennis
    """
    with opened() as it:
        shipped = acting(it, station).ship(keys, to)
    if settings.json:
        output.as_json({"shipped": [shipment.as_dict() for shipment in shipped]})
        return
    for shipment in shipped:
        output.say(
            f"{shipment.key} shipped to {shipment.to}"
            if shipment.delivered
            else f"{shipment.key} has left for {shipment.to} and will be delivered"
        )


def take_back(keys: KeysArgument, station: StationOption = None) -> None:
    """Take back what this station has shipped and nobody has got.

    All of it or nothing. It is at the station again; the dossiers that it was in do not have it.

    \b
    Example:
      postroom take-back 00001.00042
    """
    with opened() as it:
        back = acting(it, station).take_back(keys)
    _say_keys(back, {"keys": back})


def get(
    limit: LimitOption = None,
    station: StationOption = None,
) -> None:
    """Move waiting mail to the station, oldest first.

    Prints its keys.

    \b
    Examples:
      postroom get
      postroom get --limit 1 --as Simon
    """
    with opened() as it:
        keys = acting(it, station).get(limit)
    _say_keys(keys, {"keys": keys})
    if not keys and not settings.json:
        output.note("no mail")


@dossier_app.command("add")
def dossier_add(
    name: DossierArgument,
    keys: KeysArgument,
    station: StationOption = None,
) -> None:
    """Put messages of this station into a dossier; the first one creates it.

    \b
    Example:
      postroom dossier add travel 00001.00042 00001.00043
    """
    with opened() as it:
        added = acting(it, station).add_to_dossier(name, *keys)
    output.answer({"added_count": added}, f"{added} added to {name}")


@dossier_app.command("list")
def dossier_list(station: StationOption = None) -> None:
    """List the dossiers of this station.

    \b
    Example:
      postroom dossier list
    """
    with opened() as it:
        dossiers = acting(it, station).dossiers()
    if settings.json:
        output.as_json({"dossiers": [{"name": name, "message_count": count} for name, count in dossiers.items()]})
    elif dossiers:
        output.table(["dossier", "messages"], dossiers.items())
    else:
        output.note("none; begin one with: postroom dossier add NAME KEY")


@dossier_app.command("show")
def dossier_show(
    name: DossierArgument,
    station: StationOption = None,
) -> None:
    """List the messages of a dossier, in the order in which they were put there.

    \b
    Example:
      postroom dossier show travel
    """
    with opened() as it:
        content = acting(it, station).dossier(name)
    _show(content, "no message")


@dossier_app.command("remove")
def dossier_remove(
    name: DossierArgument,
    keys: KeysArgument,
    station: StationOption = None,
) -> None:
    """Take messages out of a dossier; they stay at the station.

    \b
    Example:
      postroom dossier remove travel 00001.00042
    """
    with opened() as it:
        removed = acting(it, station).remove_from_dossier(name, *keys)
    output.answer({"removed_count": removed}, f"{removed} removed from {name}")


# --- what is read ---


def enter(given: dict[str, str], name: str, text: str) -> None:
    """Add a field given on the command line."""
    if name in given:
        raise ArgumentInvalid(argument=name, why="this field is named twice")
    given[name] = text


def _rows(file: str) -> list[dict[str, Any]]:
    from pathlib import Path

    from postroom.exchange.message_files import records

    return records(Path(file))


def _fields(words: list[str]) -> dict[str, str]:
    fields: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise ArgumentInvalid(argument="FIELD=VALUE", why=f"{word!r} has no =")
        enter(fields, name.strip(), value)
    return fields


def check_heading(it: Postroom, form: Form, heading: Piece | None) -> None:
    """Raise for a line above a form that show and next do not print there."""
    if heading is None:
        return
    key = heading.said.partition(" ")[0]
    try:
        is_ours = it.show(key).type == form.name and heading.said in (key, f"{key} at {it.journal.locate(key)}")
    except MessageError:
        is_ours = False
    if not is_ours:
        what = f"this line stands above no {form.name} that there is; leave it out"
        place = Position(STANDARD_INPUT, heading.line, heading.column)
        refuse(FormInvalid, [Problem(place, what, "form-heading")])


def _message(it: Postroom, form: Form, text: str | None) -> dict[str, Any] | list[dict[str, Any]]:
    """The fields of a message, or of many."""
    if text is None:
        why = f"give FIELD=VALUE, or standard input: a form is printed with: postroom form {form.name!r}"
        raise ArgumentInvalid(argument="FIELD=VALUE", why=why)
    if not text.lstrip().startswith(("{", "[")):
        from postroom.stations.forms.filling import drawn

        filled, heading = drawn(form, text, STANDARD_INPUT)
        check_heading(it, form, heading)
        return dict(filled)
    message = parse_json(text, exact=True)
    if isinstance(message, list) and not all(isinstance(item, dict) for item in message):
        raise ArgumentInvalid(argument="standard input", why="a list of JSON objects is wanted, one for each message")
    assert isinstance(message, (dict, list)), "what begins so ends so, or is no JSON"
    return message


# --- what is shown ---


def _say_keys(keys: list[str], shape: dict[str, Any]) -> None:
    if settings.json:
        output.as_json(shape)
    elif keys:
        output.say("\n".join(keys))


def _show(answer: Answer, nothing: str) -> None:
    if settings.json:
        output.as_json(answer.as_messages())
    elif answer:
        output.table(["key", "type", "fields"], [(image.key, image.type, summary(image)) for image in answer])
    else:
        output.note(nothing)
    tell_damaged(answer)


def tell_damaged(answer: Answer) -> None:
    if answer.damaged:
        output.note(f"left out, because they are damaged: {', '.join(answer.damaged)}")


def summary(image: Image) -> str:
    """The content of a message on a short line: its fields without the key and empty ones."""
    keys = {field.name for field in image.form.fields if field.kind is Kind.KEY and field.rule is Rule.AUTOMATIC}
    line = ", ".join(_said(image.fields, keys))
    return line if len(line) <= SUMMARY_CHARS else line[: SUMMARY_CHARS - 1].rstrip() + "…"


def _said(fields: Any, without: set[str]) -> Iterable[str]:
    value: FieldValue
    for name, value in fields.items():
        shown = ", ".join(map(text, value)) if isinstance(value, tuple) else text(value)
        if shown and name not in without:
            yield f"{name}: {shown}"
