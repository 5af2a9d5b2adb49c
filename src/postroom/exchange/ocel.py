"""The journal as an object-centric event log in OCEL 2.0, as JSON or XML.

The objects are messages. An event refers to its message and to those handled with it, a message to its cause. The type
of an object is its message type, else its first queue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby, starmap
from pathlib import Path
from typing import IO, NamedTuple

from postroom.errors import ArgumentInvalid
from postroom.exchange.events import Happening, Origins, Passed, happenings
from postroom.exchange.output_file import refuse_existing, written_whole
from postroom.exchange.sorting import Sorter
from postroom.exchange.xes import EventLog
from postroom.model.body import json_text
from postroom.model.key import key_text
from postroom.model.progress import OnProgress
from postroom.model.xmltext import attribute, escaped
from postroom.store.kernel.base import Store

#: What an event says besides its time: each a string.
_SAYS = ("verb", "from", "to", "by")
_UNTYPED = "message"  # of which nothing is known but that another one names it


class Thing(NamedTuple):
    """A message as an object of the log."""

    message: int
    type: str
    cause: int | None


def export_ocel(store: Store, file: Path, *, replace: bool = False, progress: OnProgress | None = None) -> EventLog:
    """Write what happened to all messages into a file: JSON, or XML if its name ends in ``.xml`` or ``.xmlocel``."""
    write = _writer(file)
    refuse_existing(file, replace)
    passed, origins = Passed(), Origins(store)
    with Sorter() as events, Sorter() as things:
        activities: set[str] = set()
        for page in happenings(store, passed, progress):
            causes = origins.of({one.message for one in page})
            for one in page:
                activities.add(one.activity)
                events.add(one)
                origin = causes.get(one.message)
                cause, type = (None, None) if origin is None else origin
                things.add((one.message, 0, one.seq, type or one.target or _UNTYPED, cause))
                for other in (*one.partners, *([] if cause is None else [cause])):
                    things.add((other, 1, 0, _UNTYPED, None))
        with Sorter() as objects:
            types = set()
            for thing in _distinct(things):
                objects.add(thing)
                types.add(thing.type)
            in_order = starmap(Thing, objects.sorted()), starmap(Happening, events.sorted())
            with written_whole(file) as stream:
                written = write(stream, _Log(sorted(types), sorted(activities), *in_order))
    return EventLog(str(file), *written, passed.of_room, passed.damaged)


class _Log(NamedTuple):
    types: list[str]
    activities: list[str]
    objects: Iterator[Thing]
    events: Iterator[Happening]


def _distinct(things: Sorter) -> Iterator[Thing]:
    """Each message once: at its first event, or, without one in this log, when another event names it."""
    for _, mentions in groupby(things.sorted(), key=lambda record: record[0]):
        message, _, _, type, cause = next(mentions)
        yield Thing(message, type, cause)


def _writer(file: Path) -> Callable[[IO[str], _Log], tuple[int, int]]:
    kind = file.name.removesuffix(".gz").rpartition(".")[2]
    if kind in ("json", "jsonocel"):
        return _as_json
    if kind in ("xml", "xmlocel"):
        return _as_xml
    raise ArgumentInvalid(argument="file", why=f"an event log in OCEL is called NAME.json or NAME.xml, not {file}")


def _as_json(stream: IO[str], log: _Log) -> tuple[int, int]:
    says = [{"name": name, "type": "string"} for name in _SAYS]
    types = [{"name": type, "attributes": []} for type in log.types]
    stream.write(f'{{"objectTypes":{json_text(types)},\n')
    stream.write(f'"eventTypes":{json_text([{"name": name, "attributes": says} for name in log.activities])},\n')
    stream.write('"objects":[')
    objects = events = 0
    for objects, (message, type, cause) in enumerate(log.objects, 1):
        relations = [] if cause is None else [{"objectId": key_text(cause), "qualifier": "caused by"}]
        shape = {"id": key_text(message), "type": type, "attributes": [], "relationships": relations}
        stream.write(("," if objects > 1 else "") + "\n" + json_text(shape))
    stream.write('\n],\n"events":[')
    for events, one in enumerate(log.events, 1):
        stream.write(("," if events > 1 else "") + "\n" + json_text(_event(one)))
    stream.write("\n]}\n")
    return events, objects


def _event(one: Happening) -> dict[str, object]:
    return {
        "id": str(one.seq),
        "type": one.activity,
        "time": one.time,
        "attributes": [{"name": name, "value": value} for name, value in _said(one)],
        "relationships": [{"objectId": key_text(key), "qualifier": why} for key, why in _related(one)],
    }


def _said(one: Happening) -> Iterator[tuple[str, str]]:
    for name, value in zip(_SAYS, (one.verb, one.source, one.target, one.by), strict=True):
        if value is not None:
            yield name, value


def _related(one: Happening) -> Iterator[tuple[int, str]]:
    yield one.message, "message"
    for partner in one.partners:
        yield partner, "with"


def _as_xml(stream: IO[str], log: _Log) -> tuple[int, int]:
    stream.write('<?xml version="1.0" encoding="UTF-8"?>\n<log>\n  <object-types>\n')
    for type in log.types:
        stream.write(f'    <object-type name="{attribute(type)}">\n      <attributes/>\n    </object-type>\n')
    stream.write("  </object-types>\n  <event-types>\n")
    says = "".join(f'<attribute name="{name}" type="string"/>' for name in _SAYS)
    for name in log.activities:
        stream.write(f'    <event-type name="{attribute(name)}">\n      <attributes>{says}</attributes>\n')
        stream.write("    </event-type>\n")
    stream.write("  </event-types>\n  <objects>\n")
    objects = events = 0
    for thing in log.objects:
        objects += 1
        stream.write(_object_in_xml(thing))
    stream.write("  </objects>\n  <events>\n")
    for one in log.events:
        events += 1
        stream.write(_event_in_xml(one))
    stream.write("  </events>\n</log>\n")
    return events, objects


def _object_in_xml(thing: Thing) -> str:
    related = "" if thing.cause is None else _relation(thing.cause, "caused by")
    return (
        f'    <object id="{key_text(thing.message)}" type="{attribute(thing.type)}">\n'
        f"      <attributes/>\n      <objects>{related}</objects>\n    </object>\n"
    )


def _event_in_xml(one: Happening) -> str:
    attributes = "".join(f'<attribute name="{name}">{escaped(value)}</attribute>' for name, value in _said(one))
    related = "".join(_relation(key, why) for key, why in _related(one))
    return (
        f'    <event id="{one.seq}" type="{attribute(one.activity)}" time="{one.time}">\n'
        f"      <attributes>{attributes}</attributes>\n      <objects>{related}</objects>\n    </event>\n"
    )


def _relation(message: int, why: str) -> str:
    return f'<relationship object-id="{key_text(message)}" qualifier="{why}"/>'
