"""Wrong calls, made from the table of operations: refused by a room behind a server as by one of this machine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from math import inf, nan
from time import monotonic
from typing import Any

import pytest
from tests.interfaces.http.conftest import Served, furnish, serving

import postroom
from postroom.errors import ArgumentInvalid, PostroomError, QueueFull
from postroom.interfaces.http.client import leasing
from postroom.interfaces.http.client.remote import RemoteRoom
from postroom.interfaces.http.contract.operation import Operation
from postroom.interfaces.http.contract.operations import OPERATIONS
from postroom.limits import QUERY_SECONDS_MAX
from postroom.room import Postroom

#: They work for as long as they are told to, ask another database, or start Spark.
_ELSEWHERE = ("spheres.compensate", "spheres.settle_database", "station.sql")
_PARTS = (
    "queues",
    "consumers",
    "journal",
    "definitions",
    "flows",
    "gateways",
    "station",
    "stations",
    "access",
    "engine",
    "operations",
    "spheres",
)
#: Of something that is opened first: a lease, a sphere.
_OPENED = [each for each in OPERATIONS if each.part in ("lease", "sphere")]
_CALLED = [each for each in OPERATIONS if each.part in _PARTS and each.name not in _ELSEWHERE]


class Odd:
    """What no JSON has."""


_WRONG: tuple[Any, ...] = (
    None, "", " ", ".", "..", "a/b/c/d/e", "\ud800", "a\0b", "a\nb", "x" * 5_000, b"\xff", 5, -1, 10**30, 1.5, nan, inf,
    1e300, True, [], [nan], ["\ud800"], {}, {"a": nan}, {"a": [{"b": inf}]}, {"\ud800": 1}, {"a": "\0"},
)  # fmt: skip
_ODD: tuple[Any, ...] = (Odd(), [Odd()], {"a": Odd()}, {5: 1})
_WRITTEN = ("body", "bodies", "event", "events", "properties")  # as JSON, here and there
Both = tuple[Postroom, RemoteRoom, dict[str, Any]]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    """One room, as it is here and through a server."""
    folder = tmp_path_factory.mktemp("wrong")
    with postroom.open(folder / "room.db", actor="boss") as here, serving(here) as served:
        known = furnish(here, folder)
        with postroom.open(served.url, token=served.token) as it:
            assert isinstance(it, RemoteRoom)
            yield here, it, known


def part_of(operation: Operation, room: Postroom, station: str | None) -> Any:
    return getattr(room, operation.part) if station is None else room.stations.admitted(station)


def outcome(operation: Operation, part: Any, arguments: dict[str, Any]) -> tuple[Any, ...]:
    """The class, the code and the words of a refusal; none if it is done."""
    try:
        result = operation.call(part, dict(arguments))
        if operation.name in ("queues.peek", "queues.history"):
            list(result)
    except Exception as error:
        code = getattr(error, "code", None)
        return (
            (type(error).__name__, code) if isinstance(error, TypeError) else (type(error).__name__, code, str(error))
        )
    return ()


@pytest.mark.parametrize("operation", _CALLED, ids=lambda each: f"{each.name} {each.path}")
def test_a_wrong_call_is_refused_in_the_same_words(both: Both, operation: Operation) -> None:
    here, it, known = both
    said: dict[str, Any] = {
        name: known.get(value, value) if isinstance(value, str) else value for name, value in operation.example.items()
    }
    if "queue" in said:
        said["queue"] = (said["queue"],)
    station = said.pop("station", None) if operation.part == "station" else None
    differences: list[str] = []
    for parameter in operation.parameters:
        if parameter.name in ("station", "beside", "files"):
            continue
        for wrong in (*_WRONG, *_ODD) if parameter.name in _WRITTEN else _WRONG:
            if operation.name == "queues.receive" and wrong == []:
                continue  # here it is told which queues there are, too
            is_name = parameter.name == "queue" and not isinstance(wrong, list)
            arguments = {**said, parameter.name: (wrong,) if is_name else wrong}
            if parameter.name == "idempotency_key":  # each of the two has keys of its own
                here.store.transact("test", lambda tx: tx.receipts.forget("", "~"))
            ours = outcome(operation, part_of(operation, here, station), arguments)
            theirs = outcome(operation, part_of(operation, it, station), arguments) if ours else ()
            bounded = bool(theirs) and str(theirs[-1]).endswith("in one answer")  # of a server, which cuts into pages
            if ours != theirs and not bounded:
                differences.append(f"{parameter.name}={wrong!r:.40}\n  {ours}\n  {theirs}")
    assert not differences, "\n".join(differences)


@pytest.mark.parametrize("operation", _OPENED, ids=lambda each: f"{each.name} {each.path}")
def test_a_wrong_call_of_a_lease_or_a_sphere_is_refused_in_the_same_words(both: Both, operation: Operation) -> None:
    here, it, known = both
    said: dict[str, Any] = {
        name: known.get(value, value) if isinstance(value, str) else value
        for name, value in operation.example.items()
        if name not in ("lease", "sphere")
    }
    if operation.verb == "receive":
        said["queue"] = (said["queue"],)
    opened = [_Opened(room, operation.part) for room in (here, it)]
    differences: list[str] = []
    for parameter in operation.parameters:
        if parameter.name in ("lease", "sphere"):
            continue
        for wrong in (*_WRONG, *_ODD) if parameter.name in _WRITTEN else _WRONG:
            if parameter.name == "wait" and wrong in (1.5, 5):
                continue  # it would
            is_path = isinstance(said.get(parameter.name), tuple) and not isinstance(wrong, list)
            arguments = {**said, parameter.name: (wrong,) if is_path else wrong}
            ours, theirs = (each.outcome(operation, arguments) for each in opened)
            if ours != theirs:
                differences.append(f"{parameter.name}={wrong!r:.40}\n  {ours}\n  {theirs}")
    for each in opened:
        each.close()
    assert not differences, "\n".join(differences)


def test_a_wrong_time_for_a_statement_is_refused_in_the_same_words(both: Both) -> None:
    here, it, _ = both
    (sql,) = [each for each in OPERATIONS if each.name == "station.sql"]
    for wrong in _WRONG:
        if wrong is None or (type(wrong) in (int, float) and 0 < wrong <= QUERY_SECONDS_MAX):
            continue
        arguments = {"statement": "select 1", "timeout": wrong}
        ours, theirs = (outcome(sql, room.stations.admitted("John"), arguments) for room in (here, it))
        assert ours == theirs != (), wrong


class _Opened:
    """A lease or a sphere of a room; another one when it has ended."""

    def __init__(self, room: Postroom, part: str) -> None:
        self._room, self._part = room, part
        self._open()

    def _open(self) -> None:
        if self._part == "sphere":
            self._opened: Any = self._room.sphere()
            return
        self._room.send("spare", "x")
        self._opened = self._room.receive("spare", lease=600).message

    def outcome(self, operation: Operation, arguments: dict[str, Any]) -> tuple[Any, ...]:
        if "writer" in operation.example and arguments["writer"] == operation.example["writer"]:
            arguments = {**arguments, "writer": self._room.stations.admitted(arguments["writer"])}
        said = outcome(operation, self._opened, arguments)
        if self._part == "lease" and self._opened.ended is not None:
            self._open()
        return said

    def close(self) -> None:
        if self._part == "sphere":
            self._opened.abort("it was only looked at")
        else:
            self._opened.done()


# --- the same by requests that someone else has written ---

_RAW: list[tuple[str, Any, dict[str, Any]]] = [
    ('{"body": {"a": [NaN]}}', {"a": [nan]}, {}),
    ('{"body": {"a": -Infinity}}', {"a": -inf}, {}),
    ('{"body": "x", "properties": {"p": NaN}}', "x", {"properties": {"p": nan}}),
    ('{"body": "x", "properties": {"p": 1e999}}', "x", {"properties": {"p": inf}}),
    ('{"body": "x", "properties": {"p": "\\ud800"}}', "x", {"properties": {"p": "\ud800"}}),
    ('{"body": "a\\u0000"}', "a\0", {}),
    ('{"body": "\\ud800"}', "\ud800", {}),
    ('{"body": "x", "delay": NaN}', "x", {"delay": nan}),
    ('{"body": "x", "expires": Infinity}', "x", {"expires": inf}),
    ('{"body": "x", "expires": 0}', "x", {"expires": 0}),
    ('{"body": "x", "priority": 1000000000000000000000}', "x", {"priority": 10**21}),
    ('{"body": "x", "cause": "\\ud800"}', "x", {"cause": "\ud800"}),
]


@pytest.mark.parametrize(("written", "body", "options"), _RAW, ids=lambda each: str(each)[:40])
def test_what_no_message_can_have_is_refused_in_the_words_of_a_room(
    here: Served, written: str, body: Any, options: dict[str, Any]
) -> None:
    here.room.queues.create("q")
    with pytest.raises(PostroomError) as refused:
        here.room.send("q", body, **options)
    with here.client() as client:
        for _ in range(2):  # the second goes the short way, if there is one
            answer = client.post("/queues/q/messages", content=written.encode())
            problem = json.loads(answer.content, parse_constant=pytest.fail)
            words = (problem["code"], problem["detail"])
            assert (answer.status_code, *words) == (400, refused.value.code, str(refused.value))
            assert client.post("/queues/q/messages", json={"body": "well"}).status_code == 201
        lines = client.post("/queues/q/lines", content=written.encode())
        assert lines.status_code == (200 if "cause" in written else 400)  # lines of a queue have one, which is not sent
        assert client.post("/queues/q/messages", content=b'{"body": nan}').json()["code"] == "request-invalid"


def test_a_key_that_was_used_is_shown_as_it_was_given(here: Served) -> None:
    here.room.queues.create("q")
    here.room.send("q", "a", idempotency_key="k/1")
    with pytest.raises(ArgumentInvalid) as refused:
        here.room.send("q", "b", idempotency_key="k/1")
    words = str(refused.value)
    known = {"idempotency-key": "k/1"}
    with here.client() as client:
        assert client.post("/queues/q/messages", json={"body": "a"}, headers=known).status_code == 201
        asked = [("messages", {"body": "b"}), ("messages", {"body": 1}), ("batch", {"bodies": ["b"]})]
        answers = [client.post(f"/queues/q/{path}", json=said, headers=known) for path, said in asked]
        answers.append(client.post("/distribute", json={"queues": ["q"], "body": "b"}, headers=known))
        assert client.post("/queues/q/lines", content=b'{"body": "a"}', headers=known).status_code == 200
        answers.append(client.post("/queues/q/lines", content=b'{"body": "b"}', headers=known))
    assert [(each.status_code, each.json()["code"], each.json()["detail"]) for each in answers] == [
        (400, "argument-invalid", words)
    ] * 5


@pytest.mark.parametrize("key", ["a\nb", " a ", "a\x01", "k" * 200, "\u00e4" * 200, "%41", "a/b"])
def test_any_key_of_a_room_is_one_through_a_server(both: Both, key: str) -> None:
    _, it, _ = both
    first = it.send("copies", key, idempotency_key=key)
    assert it.send("copies", key, idempotency_key=key).key == first.key
    with pytest.raises(ArgumentInvalid, match="was used for another message") as refused:
        it.send("copies", "other", idempotency_key=key)
    assert repr(key) in str(refused.value)


def test_a_send_waits_for_room_longer_than_one_request_may(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    here, it, _ = both
    here.queues.create("narrow")
    here.consumers.set_policy("narrow", max_messages=1)
    monkeypatch.setattr(leasing, "LONG_POLL_SECONDS_MAX", 0.2)
    it.send("narrow", "first")
    began = monotonic()
    with pytest.raises(QueueFull):
        it.send("narrow", "second", wait=1)
    assert monotonic() - began >= 1
