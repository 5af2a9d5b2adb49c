"""The journal as an event log in XES (IEEE 1849), the format that programs for process mining read.

A trace has the events of one message, or of a message and all that followed from it. The journal mixes the events of
all messages, so they are sorted into traces, with temporary files for large logs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from pathlib import Path
from typing import IO, Any

from postroom.errors import ArgumentInvalid
from postroom.exchange.events import Happening, Origins, Passed, happenings
from postroom.exchange.output_file import refuse_existing, written_whole
from postroom.exchange.sorting import Record, Sorter
from postroom.model.key import key_text
from postroom.model.progress import OnProgress
from postroom.model.xmltext import attribute
from postroom.store.kernel.base import Store

_HEAD = """\
<?xml version="1.0" encoding="UTF-8"?>
<log xes.version="2.0" xes.features="" xmlns="http://www.xes-standard.org/">
  <extension name="Concept" prefix="concept" uri="http://www.xes-standard.org/concept.xesext"/>
  <extension name="Time" prefix="time" uri="http://www.xes-standard.org/time.xesext"/>
  <extension name="Organizational" prefix="org" uri="http://www.xes-standard.org/org.xesext"/>
  <extension name="Lifecycle" prefix="lifecycle" uri="http://www.xes-standard.org/lifecycle.xesext"/>
  <global scope="trace">
    <string key="concept:name" value="none"/>
  </global>
  <global scope="event">
    <string key="concept:name" value="none"/>
    <date key="time:timestamp" value="1970-01-01T00:00:00.000000Z"/>
    <string key="lifecycle:transition" value="complete"/>
  </global>
  <classifier name="activity" scope="event" keys="concept:name"/>
  <classifier name="resource" scope="event" keys="org:resource"/>
"""


class Case(StrEnum):
    """What a trace of a log covers."""

    MESSAGE = "message"
    CAUSE = "cause"


@dataclass(frozen=True, slots=True)
class EventLog:
    """An event log that was written: how much is in it, and how much of the journal is not."""

    file: str
    event_count: int
    case_count: int  # traces of XES, objects of OCEL
    room_event_count: int  # lines of the journal that are about no message
    damaged_count: int

    def as_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


def export_xes(
    store: Store, file: Path, case: str | Case, *, replace: bool = False, progress: OnProgress | None = None
) -> EventLog:
    """Write what happened to all messages into a file; compressed if its name ends in ``.gz``."""
    by = _case(case)
    if not file.name.removesuffix(".gz").endswith(".xes"):
        raise ArgumentInvalid(argument="file", why=f"an event log in XES is called NAME.xes or NAME.xes.gz, not {file}")
    refuse_existing(file, replace)
    passed, origins = Passed(), Origins(store)
    with Sorter() as sorter:
        for page in happenings(store, passed, progress):
            messages = {one.message for one in page}
            cases = origins.roots(messages) if by is Case.CAUSE else {message: message for message in messages}
            types = {case: origin.type for case, origin in origins.of(set(cases.values())).items()}
            for one in page:
                case_of = cases[one.message]
                sorter.add((case_of, *one, types.get(case_of)))
        with written_whole(file) as stream:
            events, traces = _write(stream, sorter.sorted(), by)
    return EventLog(str(file), events, traces, passed.of_room, passed.damaged)


def _case(case: str | Case) -> Case:
    try:
        return Case(case)
    except ValueError:
        raise ArgumentInvalid(argument="case", why=f"message or cause, not {case!r}") from None


def _write(stream: IO[str], records: Iterator[Record], by: Case) -> tuple[int, int]:
    events = traces = 0
    stream.write(_HEAD)
    stream.write(f'  <string key="concept:name" value="messages by {by.value}"/>\n')
    for case, members in groupby(records, key=lambda record: record[0]):
        traces += 1
        stream.write(f'  <trace>\n    <string key="concept:name" value="{key_text(case)}"/>\n')
        for number, record in enumerate(members):
            if number == 0 and record[-1] is not None:
                stream.write(f'    <string key="type" value="{attribute(record[-1])}"/>\n')
            events += 1
            stream.write(_event(Happening(*record[1:-1])))
        stream.write("  </trace>\n")
    stream.write("</log>\n")
    return events, traces


def _event(one: Happening) -> str:
    attributes = [
        f'      <string key="concept:name" value="{attribute(one.activity)}"/>',
        f'      <date key="time:timestamp" value="{one.time}"/>',
        f'      <string key="org:resource" value="{attribute(one.by)}"/>',
        '      <string key="lifecycle:transition" value="complete"/>',
        f'      <int key="seq" value="{one.seq}"/>',
        f'      <string key="message" value="{one.key}"/>',
        f'      <string key="verb" value="{attribute(one.verb)}"/>',
    ]
    for name, place in (("from", one.source), ("to", one.target)):
        if place is not None:
            attributes.append(f'      <string key="{name}" value="{attribute(place)}"/>')
    return "\n".join(["    <event>", *attributes, "    </event>\n"])
