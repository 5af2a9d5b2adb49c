"""Who asks, remembered until a right changes; and what a message lets nobody see."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from tests.interfaces.http.conftest import Served

import postroom
from postroom.errors import ArgumentInvalid, RightMissing, TokenRefused
from postroom.interfaces.http.access import Callers
from postroom.interfaces.http.contract.operation import Operation
from postroom.interfaces.http.contract.operations import OPERATIONS
from postroom.room import Postroom


def operation(name: str) -> Operation:
    return next(each for each in OPERATIONS if each.name == name)


@pytest.fixture
def token(room: Postroom) -> str:
    for name in ("orders", "secrets"):
        room.queues.create(name)
    room.flows.add_principal("ann", "secret")
    room.access.grant("ann", "look", "orders")
    return f"Bearer {room.access.create_token('ann', 'x')}"


def test_a_caller_is_remembered_until_a_right_changes(room: Postroom, token: str) -> None:
    callers = Callers(room)
    assert callers.known(token) is None
    caller = callers.find(token)
    assert callers.known(token) is caller
    peek = operation("queues.peek")
    callers.allow(caller, token, peek, {"queue": ("orders",)})
    assert callers.is_allowed(token, peek, "orders")
    assert not callers.is_allowed(token, peek, "secrets")
    room.access.withdraw("ann", "look", "orders")
    callers.refresh()
    assert callers.known(token) is None
    assert not callers.is_allowed(token, peek, "orders")
    with pytest.raises(RightMissing):
        callers.allow(callers.find(token), token, peek, {"queue": ("orders",)})


def test_a_token_that_expires_is_forgotten_when_it_does(room: Postroom, token: str) -> None:
    callers = Callers(room)
    caller = callers.find(token)
    callers._known[token] = caller._replace(expires=datetime.now(UTC) - timedelta(seconds=1))
    assert callers.known(token) is None
    for wrong in ("", "Basic x", "Bearer", "Bearer ", token + "x"):
        with pytest.raises(TokenRefused, match="it is unknown" if wrong == token + "x" else "set POSTROOM_TOKEN"):
            callers.find(wrong)


def test_a_message_is_shown_to_whoever_may_look_everywhere_it_has_been(room: Postroom, token: str) -> None:
    callers = Callers(room)
    caller = callers.find(token)
    show = operation("journal.show")
    mine, hidden = room.send("orders", "x").key, room.send("secrets", "y").key
    callers.allow(caller, token, show, {"key": mine})
    with pytest.raises(RightMissing):
        callers.allow(caller, token, show, {"key": hidden})


# --- what was reached by a way round ---


def test_whoever_may_load_but_not_look_tries_nothing(here: Served) -> None:
    """A rule that is tried tells what messages say."""
    here.room.queues.create("salaries")
    program = "create rule r for salaries if (/pay) then do enqueue <b>{/pay}</b> into salaries"
    with here.client(here.user("mallory", ("load", "*"))) as mallory:
        tried = mallory.post("/definitions/try", json={"files": {"z.demaq": program}})
    assert (tried.status_code, tried.json()["code"]) == (403, "right-missing")


def test_dead_letters_go_only_where_one_may_send(here: Served) -> None:
    for name in ("bills", "vault"):
        here.room.queues.create(name)
    with here.client(here.user("dora", ("manage", "bills"), ("look", "bills"))) as dora:
        refused = dora.post("/queues/bills/policy", json={"dead_letters": "vault", "attempts": 1})
        assert (refused.status_code, refused.json()["code"]) == (403, "right-missing")
        assert dora.post("/queues/bills/policy", json={"attempts": 1}).status_code == 200
    (policy,) = here.room.consumers.policy("bills").values()
    assert policy.dead_letters is None


def test_a_cause_that_someone_names_opens_no_history(here: Served) -> None:
    for name in ("open", "shut"):
        here.room.queues.create(name)
    key = here.room.send("shut", "x").key
    with here.client(here.user("carl", ("send", "open"), ("look", "open"))) as carl:
        mine = carl.post("/queues/open/messages", json={"body": "c", "cause": key}).json()["key"]
        assert carl.get(f"/messages/{mine}/trace").status_code == 200
        assert carl.get(f"/messages/{mine}/trace?causes=true").status_code == 403
    with here.client() as boss:
        assert key in boss.get(f"/messages/{mine}/trace?causes=true").text


# --- schedules, for those who may make them ---


def test_whoever_may_make_a_schedule_sees_and_removes_it(served: Served) -> None:
    for name in ("mine", "other"):
        served.room.queues.create(name)
    token = served.user("kim", ("manage", "mine"), ("send", "mine"))
    stranger, looker = served.user("lou", ("send", "mine")), served.user("max", ("look", "other"))
    served.room.consumers.schedule("theirs", "0 7 * * *", "other", body="x")
    with postroom.open(served.url, token=token) as kim:
        kim.consumers.schedule("daily", "0 7 * * *", "mine", body="x")
        assert [each.name for each in kim.consumers.schedules()] == ["daily"]
        for name in ("theirs", "nothing"):
            with pytest.raises(RightMissing):
                kim.consumers.unschedule(name)
    with postroom.open(served.url, token=looker) as max:
        assert [each.name for each in max.consumers.schedules()] == ["theirs"]
        with pytest.raises(RightMissing):
            max.consumers.unschedule("theirs")
    with postroom.open(served.url, token=stranger) as lou, pytest.raises(RightMissing):
        lou.consumers.schedules()
    with postroom.open(served.url, token=served.token) as boss:
        assert [each.name for each in boss.consumers.schedules()] == ["daily", "theirs"]
        with pytest.raises(ArgumentInvalid, match="no such schedule"):
            boss.consumers.unschedule("nothing")
    with postroom.open(served.url, token=token) as kim:
        kim.consumers.unschedule("daily")
    assert [each.name for each in served.room.consumers.schedules()] == ["theirs"]


def test_dead_letters_that_wait_for_their_time_are_asked_for_their_origin(served: Served) -> None:
    for name in ("mine", "secret", "dead"):
        served.room.queues.create(name)
    for name in ("mine", "secret"):
        served.room.consumers.set_policy(name, dead_letters="dead")
        served.room.send(name, "x")
        message = served.room.receive(name, lease=60).message
        assert message is not None
        message.fail("no", final=True)
    (secret,) = [each for each in served.room.receive_many("dead", count=2, lease=60) if each.body][1:]
    secret.release(delay=3_600)
    token = served.user("kim", ("manage", "dead"), ("look", "dead"), ("send", "mine"))
    with postroom.open(served.url, token=token) as kim:
        with pytest.raises(RightMissing):
            kim.consumers.redrive("dead")
        with pytest.raises(RightMissing):
            kim.consumers.redrive("dead", keys=[secret.key])


def test_what_stays_and_what_is_blocked_is_told_to_clients(served: Served) -> None:
    for name in ("a", "b", "dead", "by"):
        served.room.queues.create(name)
    for name in ("a", "b"):
        served.room.send("dead", name, properties={"dead.queue": name})
    served.room.queues.remove("b")
    served.room.consumers.set_policy("by", by="c")
    served.room.send_many("by", ["1", "2"], properties={"c": "x"})
    with postroom.open(served.url, token=served.token) as boss:
        boss.receive("by", lease=60)
        assert boss.receive("by", lease=60).message is None
        assert [(each.body, each.blocked) for each in boss.peek("by")] == [("2", True)]
        done = boss.consumers.redrive("dead")
        assert (done.count, len(done.skipped)) == (1, 1)
    with served.client() as client:
        (shown,) = client.get("/queues/by/messages").json()["messages"]
        assert shown["state"] == "blocked"


def test_a_right_of_no_object_is_one_of_everything(here: Served) -> None:
    here.room.flows.add_principal("ben", "secret")
    with here.client() as client:
        answer = client.get("/why-not", params={"principal": "ben", "verb": "send"})
    assert (answer.status_code, answer.json()["object"], answer.json()["is_allowed"]) == (200, "*", False)
