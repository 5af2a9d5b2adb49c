"""A queue: browse, search, send by hand, hold, enable, policy; each with its right."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pytest
from tests.interfaces.http.conftest import Served
from tests.interfaces.web.conftest import PASSWORD, Browser, browser
from tests.interfaces.web.operating.test_overview import TREE
from tests.interfaces.web.stations.test_desk import PAYLOADS, Shape

from postroom.interfaces.web.operating.queue_page import FIELDS
from postroom.store.kernel.policies import Policy


def following(there: Browser, text: str, label: str = "The next ones") -> str:
    """The page that a link of a page leads to."""
    link = re.search(f'href="([^"]+)">{label}</a>', text)
    assert link is not None
    return there.client.get(there.url + unescape(link[1])).text


def test_a_button_that_is_always_refused_is_not_there(shop: Served, operator: Browser, tmp_path: Path) -> None:
    """Only a station changes its queues, and a message is sent to a queue, not to a level."""
    (tmp_path / "tree.qdl").write_text(TREE)
    shop.room.load(tmp_path / "tree.qdl")
    shop.room.stations.add("Ann", PASSWORD)
    (tmp_path / "note.form").write_text("type NOTE\n| KEY: ______ |\nfield KEY key automatic\n")
    shop.room.load(tmp_path / "note.form")
    ann = shop.room.stations.admitted("Ann")
    ann.ship(ann.create("NOTE"), "Ann")
    everything = ["send", "hold", "policy"]
    for queue, there in (
        ("answers", everything),
        ("CLAIMS/NORTH", everything),
        ("CLAIMS", ["hold"]),
        ("mailbox:Ann", []),
        ("station:Ann", []),
    ):
        page = operator.get(f"/queues/{queue}").text
        assert [part for part in everything if f'id="{part}"' in page] == there, queue
        sent = operator.post(f"/queues/{queue}", do="send", body="x")
        assert (sent.status_code == 200) is ("send" in there)
        changed = operator.post(f"/queues/{queue}", do="policy", attempts="3")
        assert (changed.status_code == 200) is ("policy" in there)


def test_a_property_is_found_as_it_was_written(shop: Served, operator: Browser) -> None:
    """What is no text is written as JSON has it, and not as Python does."""
    operator.post(
        "/queues/answers", do="send", body="x", properties="urgent: true\nuntil: null\nrate: 1.50\nsaid: True"
    )
    (message,) = shop.room.queues.peek("answers")
    for name, value, found in (
        ("urgent", "true", True),
        ("urgent", "True", False),
        ("until", "null", True),
        ("rate", "1.5", True),
        ("said", "True", True),
    ):
        page = operator.get(f"/queues/answers?property={name}&value={value}").text
        assert (f'data-row="{message.key}"' in page) is found, (name, value)
    for page in (operator.get("/queues/answers").text, operator.get(f"/messages/{message.key}").text):
        for said in (">true<", ">null<", ">1.5<", ">True<"):
            assert said in page
        assert ">None<" not in page


def test_a_search_goes_on_where_it_has_ended(shop: Served, operator: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is in a queue is found, however much there is before it."""
    monkeypatch.setattr("postroom.interfaces.web.operating.queue_page.SEARCHED_MESSAGES_MAX", 200)
    room = shop.room
    room.send_many("answers", [{"n": number} for number in range(650)])
    room.send("answers", "needle", properties={"colour": "red"})
    text = operator.get("/queues/answers?property=colour&value=red").text
    for _ in range(3):
        assert "200 messages were looked at." in text
        assert "No message is like this." in text
        text = following(operator, text, "Search the next ones")
    assert "51 messages were looked at." in text
    assert ">needle<" in text
    assert "Search the next ones" not in text
    many = operator.get("/queues/answers?text=%22n%22").text  # a page is filled, and none is left out
    assert many.count("data-row=") == 100
    assert following(operator, many, "Search the next ones").count("data-row=") == 100


def test_messages_are_browsed_and_searched_by_properties(shop: Served, operator: Browser) -> None:
    room = shop.room
    for number in range(130):
        room.send("answers", f"<answer>{number}</answer>", format="xml", properties={"n": number})
    first = operator.get("/queues/answers").text
    assert first.count("data-row=") == 100
    second = following(operator, first)
    assert second.count("data-row=") == 30
    assert "The next ones" not in second
    assert following(operator, second, "From the beginning").count("data-row=") == 100
    assert operator.get("/queues/answers?after=nonsense").status_code == 400
    found = operator.get("/queues/answers?property=n&value=117").text
    assert found.count("data-row=") == 1
    assert "&lt;answer&gt;117" in found
    assert operator.get("/queues/answers?text=%3E12").text.count("data-row=") == 11
    assert "No message is like this." in operator.get("/queues/answers?property=none").text
    assert operator.get("/queues/nowhere").status_code == 404


def test_a_message_is_sent_by_hand_with_its_properties(shop: Served, operator: Browser) -> None:
    body = '{"a": [1, 2]}'
    sent = operator.post("/queues/answers", do="send", body=body, format="json", properties="n: 1\nname: Ida: x")
    assert "Sent 0" in sent.text
    (message,) = shop.room.queues.peek("answers")
    assert (message.value, dict(message.properties)) == ({"a": [1, 2]}, {"n": 1, "name": "Ida: x"})
    assert [event.by for event in shop.room.trace(message.key)] == ["operator"]
    for wrong in ({"body": "<", "format": "xml"}, {"body": "x", "properties": "none"}, {"body": "x", "format": "odd"}):
        refused = operator.post("/queues/answers", do="send", **wrong)
        assert refused.status_code == 400
        assert "Nothing was changed" in refused.text
    assert len(shop.room.queues.peek("answers").messages) == 1


def test_a_queue_is_held_and_enabled_with_its_password(shop: Served, operator: Browser) -> None:
    room = shop.room
    assert "It has no password" in operator.get("/queues/answers").text
    assert operator.post("/queues/answers", do="password", password="").status_code == 400
    assert "it can be held" in operator.post("/queues/answers", do="password", password="key").text
    assert operator.post("/queues/answers", do="password", password="another").status_code == 403
    assert operator.post("/queues/answers", do="hold", password="wrong").status_code == 403
    held = operator.post("/queues/answers", do="hold", hold="input only", password="key")
    assert "Held 1 queue: answers." in held.text
    assert '/queues/answers#hold">Enable what was held</a>' in held.text
    assert "Enable what was held" in operator.get("/you").text
    (count,) = room.count("answers").queues
    assert count.hold.label == "input only"
    again = operator.post("/queues/answers", do="hold", hold="input only", password="key")
    assert "Held 0 queues." in again.text
    assert "Enable what was held" not in again.text
    enabled = operator.post("/queues/answers", do="enable", password="key")
    assert "Enabled 1 queue: answers." in enabled.text
    assert "Enable what was held" not in enabled.text


def test_the_policy_is_changed_field_by_field(shop: Served, operator: Browser) -> None:
    room = shop.room
    room.queues.create("work")
    changed = operator.post("/queues/work", do="policy", attempts="3", order="strict", backoff="0.5")
    assert "The policy was changed: attempts, backoff, order." in changed.text
    policy = room.consumers.policy("work")["work"]
    assert (policy.attempts, policy.order, policy.backoff) == (3, "strict", 0.5)
    assert set(Policy._fields) == FIELDS.keys(), "none is left out"
    assert "The policy is the same." in operator.post("/queues/work", do="policy", attempts="3").text
    for wrong in ("many", "0", "1.5"):
        assert operator.post("/queues/work", do="policy", attempts=wrong).status_code == 400
    assert room.consumers.policy("work")["work"] == policy


def test_each_thing_needs_its_right(shop: Served) -> None:
    room = shop.room
    room.flows.add_principal("some", PASSWORD)
    some = browser(shop.url)
    some.sign_in("some")
    assert some.get("/queues/answers").status_code == 403
    room.access.grant("some", "look", "answers")
    shown = some.get("/queues/answers")
    assert shown.status_code == 200
    for word in ("Send by hand", "Hold and enable", "Change the policy", "/web/overview"):
        assert word not in shown.text
    assert some.get("/queues/stock").status_code == 403
    for action in ("send", "hold", "enable", "policy"):
        assert some.post("/queues/answers", do=action, body="x", attempts="3").status_code == 403, action
    room.access.grant("some", "send", "answers")
    assert "Sent 0" in some.post("/queues/answers", do="send", body="x").text
    some.client.close()


def test_payloads_change_no_structure(shop: Served, operator: Browser) -> None:
    shapes = []
    for said in ("plain", *PAYLOADS):
        key = shop.room.send("answers", said, properties={"p": said}).key
        page = operator.client.get(f"{shop.url}/web/queues/answers", params={"property": "p", "value": said})
        assert key.split(".")[1] in page.text
        shapes.append(Shape(page.text).elements)
        shapes.append(Shape(operator.get(f"/messages/{key}").text).elements)
        shop.room.receive("answers")
    assert all(shape == shapes[0] for shape in shapes[::2])
    assert all(shape == shapes[1] for shape in shapes[1::2])


def test_what_was_refused_stays_and_says_why_at_its_field(shop: Served, operator: Browser) -> None:
    shop.room.queues.create("work")
    refused = operator.post("/queues/work", do="policy", attempts="many", backoff="0.5").text
    assert '<input id="policy-attempts" name="attempts" value="many" aria-invalid="true"' in refused
    assert "A number is expected.</span>" in refused
    assert '<input id="policy-backoff" name="backoff" value="0.5">' in refused
    refused = operator.post("/queues/work", do="send", body="x", properties="no colon").text
    assert '<span class="error" id="properties-error">' in refused
    assert ">no colon</textarea>" in refused
