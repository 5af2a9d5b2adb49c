"""Commands on the room: load, trace, locate, show, journal, verify, outbox."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer

from postroom.errors import (
    ArgumentInvalid,
    DescriptionInvalid,
    FlowInvalid,
    FormInvalid,
    JournalDiffers,
    MessageGone,
    NodeDown,
    ProgramInvalid,
    RoomMissing,
)
from postroom.interfaces.cli import output
from postroom.interfaces.cli.context import (
    Commands,
    KeyArgument,
    argument,
    opened,
    option,
    password_at_hand,
    settings,
    typed_password,
)
from postroom.model.moment import to_iso
from postroom.model.place import place_of
from postroom.model.types import text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from postroom.model.message import Message
    from postroom.room import Postroom
    from postroom.stations.mail.editions import Valued
    from postroom.stations.mail.story import Story, StoryMessage
    from postroom.store.kernel.journal import Event
    from postroom.store.proof.verification import Difference

outbox_app = Commands(help="Effects that are pending or have failed.")


def load(
    files: Annotated[
        list[str], typer.Argument(help="Definition files (.qdl, .demaq, .flow, .form).", show_default=False)
    ],
    check: Annotated[bool, option("--check", "Only check the files, and list every problem.")] = False,
    drop: Annotated[bool, option("--drop", "Remove slicings and spaces even if they have messages.")] = False,
    change_passwords: Annotated[
        bool, option("--change-passwords", "As the operator: change passwords without the current ones.")
    ] = False,
) -> None:
    """Load definitions from files, all or nothing.

    The suffix determines the language. The .qdl files of one load are the room's queue description. A .demaq file is a
    module of rules and replaces the module of its name; a running engine uses it from its next step on. The domains of
    .flow files are replaced, except subscriptions and other additions made at run time. The types and procedures of
    .form files are added, or become new versions; a message keeps the version it was created with, and a disabled
    procedure stays disabled. Queues that remain keep their messages; a queue or slicing that would be removed must have
    none. A .qdl file that changes or removes the password of a level needs the current one: $POSTROOM_PASSWORD, or
    typed.

    \b
    Examples:
      postroom load orders.qdl
      postroom load procurement.demaq
      postroom load trading.flow
      postroom load office.form
      postroom load --check procurement.demaq
    """
    if check:
        _check(files)
        return
    from postroom.room import loading

    loading.read(files)  # before a room is made for them
    with opened(create=True) as it, output.progress("preparing entries") as progress:
        old = typed_password if password_at_hand() else None
        loaded = it.load(*files, progress=progress, drop=drop, old=old, change_passwords=change_passwords)
    if settings.json:
        output.as_json(loaded.as_dict())
        return
    changed = f"{len(loaded.changed)} changed, " if loaded.changed else ""
    output.say(
        f"version {loaded.version}: {len(loaded.added)} added, {changed}{len(loaded.kept)} kept, "
        f"{len(loaded.removed)} removed"
    )
    lists = {
        "added": loaded.added,
        "changed": loaded.changed,
        "removed": loaded.removed,
        "passwords changed": loaded.passwords,
    }
    for word, names in lists.items():
        if names:
            output.say(f"{word}: {', '.join(names)}")


def _check(files: list[str]) -> None:
    problems: list[str] = []
    code = ""
    try:
        entries = _checked(files)
    except (DescriptionInvalid, FlowInvalid, FormInvalid, ProgramInvalid) as error:
        problems = [str(problem) for problem in error.facts["problems"]]
        entries, code = 0, error.code
    if settings.json:
        output.as_json({"status": "99", "problems": problems} if problems else {"count": entries})
    elif problems:
        for problem in problems:
            output.note(f"postroom: {code}: {problem}")
    else:
        output.say(f"{entries} entries, no problem found; nothing was loaded")
    if problems:
        raise typer.Exit(1)


def _checked(files: list[str]) -> int:
    """Check definitions: against the room, or on their own if there is none yet."""
    try:
        with opened() as it:
            return it.definitions.check(*files)
    except RoomMissing:
        from postroom.room import loading

        sources = loading.read(files)
        sources.check(None)
        return sources.count


def trace(
    key: KeyArgument,
    causes: Annotated[
        bool, option("--causes", "Show all messages that caused it and that it caused, as a tree.")
    ] = False,
    values: Annotated[bool, option("--values", "Show the values of each edition.")] = False,
) -> None:
    """List what happened to a message, oldest first.

    Any station may ask, even after the message was deleted. With --causes, each message is printed below its cause,
    with its creator: a rule, an arc, a procedure or a person.

    \b
    Examples:
      postroom trace 00001.00042
      postroom trace 00001.00042 --causes
      postroom trace 00001.00042 --values
    """
    with opened() as it:
        if causes and values:
            raise ArgumentInvalid(argument="--values", why="it shows one message, --causes many: give one of them")
        if values:
            _tell_values(key, it.journal.trace_values(key))
            return
        if causes:
            _tell(it.trace(key, causes=True))
            return
        events = it.trace(key)
    if settings.json:
        output.as_json({"key": key, "events": [event.as_dict() for event in events]})
        return
    _show_events(events)
    if events[-1].verb == "not-sent" and (events[-1].detail or {}).get("retry"):
        output.note(f"{key} was not sent yet, and will be tried again: postroom outbox list")


def _tell_values(key: str, told: list[Valued]) -> None:
    if settings.json:
        output.as_json({"key": key, "events": [entry.as_dict() for entry in told]})
        return
    rows = [
        (to_iso(entry.event.time), entry.event.verb, entry.event.by, entry.edition or "", _values(entry.values))
        for entry in told
    ]
    output.table(["time", "verb", "by", "edition", "values"], rows)


def _values(written: Mapping[str, Any] | None) -> str:
    return ", ".join(f"{name}: {_value(value)}" for name, value in (written or {}).items())


def _value(value: Any) -> str:
    return ", ".join(map(_value, value)) if isinstance(value, list) else text(value)


def _tell(story: Story) -> None:
    if settings.json:
        output.as_json(story.as_dict())
        return
    output.table(
        ["key", "type", "time", "by", "history"],
        [
            (_in_tree(told, story.key), told.type, to_iso(told.events[0].time), told.events[0].by, _history(told))
            for told in story.messages
        ],
    )
    if not story.complete:
        output.note(f"there are more than these {len(story.messages)} messages; trace one of them to see more")
    for node in story.silent:
        output.note(f"node {node} did not answer: its part of the history is missing")


def _in_tree(told: StoryMessage, traced: str) -> str:
    """A message below its cause; the requested one is marked."""
    return f"{'  ' * told.depth}{told.key}{' *' if told.key == traced else ''}"


def _history(told: StoryMessage) -> str:
    """The history of a message on one line: where it was put, and who moved, received or changed it."""
    first, *later = told.events
    stretches = [str(first.target), *map(_stretch, later)]
    if told.sphere is not None:
        detail = first.detail or {}
        about = [f"in sphere {told.sphere}", *([told.outcome] if told.outcome else [])]
        about += [f"undoes {detail['compensates']}"] if "compensates" in detail else []
        about += [f"on {detail['when']}"] if detail.get("when") in ("commit", "abort") else []
        stretches[0] += f" ({', '.join(about)})"
    return "; ".join(stretches)


def _stretch(event: Event) -> str:
    verb = "taken" if event.verb == "take" else event.verb
    to = f" to {event.target}" if event.target not in (None, event.source) else ""
    partners = (event.detail or {}).get("with", ())
    beside = f" with {' '.join(partners)}" if partners else ""
    return f"{verb}{to} by {event.by}{beside}"


def locate(key: KeyArgument) -> None:
    """Say where a message is: a queue, a station or a mailbox.

    Any station may ask for any message.

    \b
    Example:
      postroom locate 00001.00042
    """
    with opened() as it:
        place = it.journal.locate(key)
        damaged = False
        if place is not None:
            with suppress(MessageGone, NodeDown):  # where it is, the journal of the control node tells
                damaged = it.journal.show(key).corrupt
    if settings.json:
        output.as_json({"key": key, "place": place, **({"corrupt": True} if damaged else {})})
    elif place is None:
        output.note(f"{key} was processed and deleted; its history: postroom trace {key}")
    else:
        output.say(place)
        if damaged:
            output.note(output.damaged(key))


def show(
    key: KeyArgument,
    edition: Annotated[int | None, option("--edition N", "An earlier edition; 1 is as it was created.")] = None,
) -> None:
    """Show one message, or its filled form.

    Earlier editions of a form are kept; postroom trace --values lists them.

    \b
    Examples:
      postroom show 00001.00042
      postroom show 00001.00042 --edition 1
    """
    with opened() as it:
        message = it.show(key, edition)
        filled = None if settings.json else _filled(it, message)
    if settings.json:
        output.as_json(message.as_dict())
        return
    if filled is not None:
        output.say(filled)
        return
    if message.corrupt:
        from postroom.model.place import place_of

        output.say(f"key: {message.key}\nqueue: {place_of(message.queue)}")
        output.note(output.damaged(message.key))
        return
    shape = message.as_dict()
    del shape["body"]
    for name, value in shape.items():
        if value not in (None, {}, ""):
            output.say(f"{name}: {value}")
    output.say(f"\n{message.body}")


def _filled(it: Postroom, message: Message) -> str | None:
    """The filled form of a station's message, headed by its place."""
    from postroom.stations.forms.filling import values
    from postroom.stations.places.names import database, mailbox
    from postroom.store.kernel.queues import LEAVING

    of_station = message.queue.startswith((database(""), mailbox(""))) or message.queue == LEAVING
    edition = it.stations.form_of(message) if of_station and not message.corrupt else None
    if edition is None:
        return None
    place = it.journal.locate(message.key)
    return f"{message.key} at {place}\n{edition.form.shown(values(edition.form, message.body))}"


def journal(
    last: Annotated[int, option("--last -n N", "How many entries.", min=1, show_default=True)] = 20,
) -> None:
    """Show the newest entries of the journal.

    The journal has every change of the room. Prints the oldest entry first.

    \b
    Example:
      postroom journal --last 50
    """
    with opened() as it:
        events = it.journal.last(last)
    if settings.json:
        output.as_json({"events": [event.as_dict() for event in events]})
    else:
        _show_events(events)


def verify(
    archives: Annotated[bool, option("--archives", "Read the archived part of the journal, too.")] = False,
) -> None:
    """Compare the room with its journal.

    The database reads its own files, and messages, definitions and lines of the journal are compared with their hashes.
    The journal is replayed from its beginning: where each message must be and in which state, counts, holds, locks,
    tokens, timers. The archived part is checked by its totals. Exits with 1 if something is stored otherwise.

    \b
    Examples:
      postroom verify
      postroom verify --archives
    """
    with opened() as it:
        verdict = it.journal.verify(archives=archives)
    if settings.json:
        output.as_json(verdict.as_dict())
    elif not verdict.differences:
        messages = f"{verdict.messages} message(s) in {verdict.queues} queue(s), {verdict.departed} gone"
        output.say(f"verified: {verdict.lines} journal entries, {messages}")
        if verdict.uncovered:
            output.note(f"{verdict.uncovered} entries are older than digests; their times and names are not checked")
        if verdict.older:
            output.note(
                f"{verdict.older} line(s) of an earlier version do not say all; for the rest the room was believed"
            )
    _refuse(verdict.differences)


def mend() -> None:
    """Repair what can be repaired without a backup.

    Rebuilds indexes from their tables, corrects places and counts from the journal, and sets damaged messages aside.
    Copy the file before. Exits with 1 if something is left that only a backup can restore.

    \b
    Example:
      postroom mend
    """
    with opened() as it:
        mended = it.journal.mend()
    if settings.json:
        output.as_json(mended.as_dict())
    else:
        output.say(f"rebuilt indexes; corrected {mended.queues} queue(s) and {mended.places} message(s)")
        if mended.entries:
            output.say(f"rebuilt {mended.entries} entries of selectors")
        for key in mended.set_aside:
            output.say(f"set aside: {key}")
    _refuse(mended.left)


def _refuse(differences: Sequence[Difference]) -> None:
    """Exit with 1 if the room and its journal differ; prints how, unless a document has."""
    if not differences:
        return
    if settings.json:
        raise typer.Exit(1)
    output.table(
        ["differs", "the journal", "the room"],
        [(difference.what, difference.journal, difference.tables) for difference in differences],
    )
    raise JournalDiffers(count=len(differences))


@outbox_app.command("list")
def outbox_list() -> None:
    """List effects that are pending or have failed.

    \b
    Example:
      postroom outbox list
    """
    with opened() as it:
        effects = it.engine.outbox()
    if settings.json:
        output.as_json({"effects": [effect.as_dict() for effect in effects]})
    elif effects:
        output.table(
            ["number", "kind", "state", "attempts", "command", "note"],
            [(one.id, one.kind, one.state, one.attempts, _what(one.payload), one.note) for one in effects],
        )
    else:
        output.note("the outbox is empty")


@outbox_app.command("retry")
def outbox_retry(
    number: Annotated[int, argument("NUMBER", "From postroom outbox list.")],
) -> None:
    """Give a failed effect new attempts.

    It uses the current command line of its queue. A running engine starts it at once.

    \b
    Example:
      postroom outbox retry 3
    """
    with opened() as it:
        it.engine.retry(number)
    output.answer({"effect": number}, f"{number} is pending again")


@outbox_app.command("drop")
def outbox_drop(
    number: Annotated[int, argument("NUMBER", "From postroom outbox list.")],
) -> None:
    """Remove an effect from the outbox without executing it.

    \b
    Example:
      postroom outbox drop 3
    """
    with opened() as it:
        it.engine.drop_effect(number)
    output.answer({"effect": number}, f"{number} was dropped")


def _what(payload: Any) -> str:
    if "message" in payload:  # of a gateway queue
        return f"{payload['queue']} {payload['message']}"
    return f"{payload.get('command', '')} -arg {payload.get('queue', '')}"


def _show_events(events: list[Event]) -> None:
    output.table(
        ["time", "verb", "key", "from", "to", "by", "detail"],
        [
            (
                to_iso(event.time),
                event.verb,
                event.key,
                place_of(event.source),
                place_of(event.target),
                event.by,
                "" if event.detail is None else ", ".join(f"{name}={value}" for name, value in event.detail.items()),
            )
            for event in events
        ],
    )
