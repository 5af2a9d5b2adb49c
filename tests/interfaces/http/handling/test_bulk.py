"""JSON Lines in both directions."""

from __future__ import annotations

import json

import pytest
from tests.interfaces.http.conftest import Served

from postroom.interfaces.http.handling import bulk


def test_many_lines_are_sent_in_commits_of_some_with_progress_and_read_again(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "BULK_LINES", 100)
    served.room.queues.create("orders")
    lines = b"".join(json.dumps({"body": {"n": number}}).encode() + b"\n" for number in range(250))
    with served.client() as client:
        told = [json.loads(line) for line in client.post("/queues/orders/lines", content=lines).iter_lines()]
        assert [each["message_count"] for each in told] == [100, 200, 250]
        assert told[-1]["done"] is True
        read = [json.loads(line) for line in client.get("/queues/orders/lines").iter_lines()]
    assert [each["body"]["n"] for each in read] == list(range(250))
    assert {event.by for event in served.room.journal.last(250)} == {"boss"}


@pytest.mark.parametrize("wrong", [b"{", b"[]", b'{"odd": 1}', b'{"body": "x", "odd": 1}', b"\xff"])
def test_a_wrong_line_ends_it_and_names_itself(here: Served, wrong: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "BULK_LINES", 2)
    here.room.queues.create("orders")
    content = b'{"body": "a"}\n\n{"body": "b"}\n{"body": "c"}\n' + wrong
    with here.client() as client:
        told = [json.loads(line) for line in client.post("/queues/orders/lines", content=content).iter_lines()]
    assert told[0]["message_count"] == 2
    assert told[-1]["error"]["facts"]["where"] == "line 4"
    assert here.room.count("orders").queues[0].unprocessed == 2


@pytest.mark.slow
def test_a_hundred_thousand_messages_in_one_request(here: Served) -> None:
    here.room.queues.create("orders")
    with here.client() as client:
        content = b'{"body": "x"}\n' * 100_000
        told = client.post("/queues/orders/lines", content=content, timeout=300).text.splitlines()
    assert json.loads(told[-1])["message_count"] == 100_000
