"""A request that is repeated with its key is done once."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

from tests.interfaces.http.conftest import MEMO, TRADING, Served, serving

from postroom.room import Postroom


def test_every_write_is_done_once_under_a_key(here: Served, tmp_path: Path) -> None:
    (tmp_path / "memo.form").write_text(MEMO)
    here.room.stations.add("John", "secret")
    here.room.load(tmp_path / "memo.form")
    here.room.queues.create("q")
    said = {"type": "MEMO", "fields": {"To": "Jane"}}
    with here.client() as client, here.client(here.user("ann", ("work", "John"))) as other:
        headers = {"idempotency-key": "one"}
        first = client.post("/stations/John/messages", json=said, headers=headers)
        again = client.post("/stations/John/messages", json=said, headers=headers)
        assert (again.status_code, again.content) == (200, first.content)
        another = client.post("/stations/John/copy", json=said, headers=headers)
        assert another.status_code == 404
        changed = client.post("/stations/John/messages", json={**said, "fields": {"To": "Jim"}}, headers=headers)
        assert (changed.status_code, changed.json()["code"]) == (400, "request-invalid")
        theirs = other.post("/stations/John/messages", json=said, headers=headers)
        assert theirs.json()["key"] != first.json()["key"]
        batch = [client.post("/queues/q/batch", json={"bodies": ["a", "b"]}, headers={"idempotency-key": "b"})] * 2
        assert batch[0].json() == batch[1].json()
        wrong = client.post("/queues/q/batch", json={"bodies": []}, headers={"idempotency-key": "x" * 201})
        assert wrong.status_code == 400
        refused = client.post("/queues/q/receive", json={}, headers={"idempotency-key": "r"})
        assert (refused.status_code, refused.json()["happened"]) == (400, "no")
    assert len(here.room.stations.admitted("John").messages()) == 2
    assert here.room.count("q").queues[0].unprocessed == 2


def test_a_refusal_is_not_remembered_and_two_at_once_are_one(here: Served) -> None:
    with here.client() as client:
        headers = {"idempotency-key": "later"}
        assert client.post("/queues/q/batch", json={"bodies": ["x"]}, headers=headers).status_code == 404
        here.room.queues.create("q")
        assert client.post("/queues/q/batch", json={"bodies": ["x"]}, headers=headers).status_code == 200
        told: list[str] = []

        def send() -> None:
            told.append(client.post("/queues/q/batch", json={"bodies": ["y"]}, headers={"idempotency-key": "k"}).text)

        threads = [threading.Thread(target=send) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert len(set(told)) == 1
    assert here.room.count("q").queues[0].unprocessed == 2


def test_sends_of_several_messages_are_done_once_also_at_another_server(room: Postroom, tmp_path: Path) -> None:
    (tmp_path / "trading.flow").write_text(TRADING)
    room.load(tmp_path / "trading.flow")
    for name in ("a", "b"):
        room.queues.create(name)
    batch = [{"specversion": "1.0", "id": str(number), "source": "s", "type": "t"} for number in range(2)]
    asked: list[tuple[str, Any, str]] = [
        ("/queues/a/batch", {"bodies": ["1", {"n": 2}]}, "application/json"),
        ("/queues/a/segments", {"segments": ["3", "4"]}, "application/json"),
        ("/distribute", {"queues": ["a", "b"], "body": "5"}, "application/json"),
        ("/spaces/Trades/batch", {"events": [{"issue": "A", "price": 1}]}, "application/json"),
        ("/queues/b/messages", batch, "application/cloudevents-batch+json"),
    ]
    told: list[list[Any]] = []
    for _ in range(2):
        with serving(room) as served, served.client() as client:
            for _ in range(2):
                answers = []
                for number, (path, said, media) in enumerate(asked):
                    headers = {b"idempotency-key": f"ä {number}".encode(), b"content-type": media.encode()}
                    answer = client.post(path, content=json.dumps(said), headers=headers)
                    assert answer.status_code == 200, answer.text
                    answers.append(answer.json())
                told.append(answers)
            other = client.post("/queues/a/batch", json={"bodies": ["9"]}, headers={b"idempotency-key": "ä 0".encode()})
            assert (other.status_code, other.json()["happened"]) == (400, "no")
    assert all(answers == told[0] for answers in told)
    counts = {count.queue: count.unprocessed for count in room.count().queues}
    assert (counts["a"], counts["b"], counts["Trades"]) == (4, 3, 1)
