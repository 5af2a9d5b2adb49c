"""NEXMark's queries 1 to 8 as a stream from files to files, against loops over plain lists."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from tests.examples.test_nexmark import FLOW, QUERIES
from tests.flows.streams.conftest import Folders, folders, streaming
from tests.oracle import nexmark

from postroom.flows.language.definitions import Arc
from postroom.flows.language.reader import parse
from postroom.room import Postroom

__all__ = ["folders", "streaming"]
STREAMS = FLOW.with_name("streams.flow")
SLICE = 20  # events: with how late they come, no more than the lateness of ten seconds


def written(folders: Folders, events: nexmark.Events) -> None:
    """Events as files, one for each space and some seconds."""
    ending = len(events) - 9
    bounds = [*range(0, ending, SLICE), *range(ending, len(events), 3), len(events)]
    for number, (start, end) in enumerate(pairwise(bounds)):
        for space in ("Persons", "Auctions", "Bids"):
            lines = [json.dumps(body) for name, body in events[start : min(end, len(events))] if name == space]
            text = "".join(f"{line}\n" for line in lines)
            folders.add(space.lower(), f"{number:06}.json", text.encode(), at=1_700_000_000 + number)


def answered(folders: Folders, query: str) -> list[str]:
    return sorted(json.dumps(each) for each in folders.read(query.lower()) if not nexmark.last(each))


def compare(room: Postroom, folders: Folders, seed: int, count: int, files: int) -> None:
    events = nexmark.generated(seed, count)
    written(folders, events)
    room.gateways.add("nexmark", "files", folder=str(folders.root), max_files=str(files))
    room.load(STREAMS)
    room.stream(until_idle=True)
    assert [message.body for message in room.queues.info("postroom-errors")] == []
    wanted = nexmark.answers(events)
    for query in QUERIES:
        assert answered(folders, query) == wanted[query], query
        assert wanted[query], f"{query}: there is something to compare"


def test_the_arcs_are_those_of_the_store() -> None:
    both = [
        [str(each) for each in parse(file.read_text(), file.name) if isinstance(each, Arc)] for file in (FLOW, STREAMS)
    ]
    assert both[0] == both[1]


def test_the_eight_queries_from_files_to_files(streaming: Postroom, folders: Folders) -> None:
    compare(streaming, folders, 7, 300, 9)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_the_eight_queries_in_batches_of_any_size(streaming: Postroom, folders: Folders, seed: int) -> None:
    compare(streaming, folders, seed, 1_200, (3, 11, 40, 100)[seed])
