"""The way of a message: what procedures did and why, and what led to what as a tree that opens."""

from __future__ import annotations

import re

from tests.interfaces.http.conftest import Served
from tests.interfaces.web.conftest import Browser

from postroom.interfaces.web.stations.trace import _stops, _tree
from postroom.limits import CAUSES_NESTED_MAX
from postroom.stations.mail.story import Story, StoryMessage


def test_a_trace_says_what_a_procedure_did_and_why(office: Served, clerk: Browser, stranger: Browser) -> None:
    ann = office.room.stations.admitted("Ann")
    claim = ann.create("CLAIM", {"No": 6001, "Claimant": "x", "Amount": "10"})
    approval = ann.create("APPROVAL", {"No": 6001, "Cover": "20"})
    office.room.run(until_idle=True)
    text = clerk.get(f"/trace/{claim}").text
    assert "procedure settle</strong> took it at" in text
    assert f'href="/web/trace/{approval}"' in text.partition("took it at")[2].partition("</p>")[0]
    assert "It wrote State." in text
    assert "Because it collects:" in text
    assert "Cover: &gt;= ?claim.Amount" in text
    assert "It put it into the dossier done." in clerk.get(f"/trace/{approval}").text
    # whoever may look at the station sees what was done; definitions are seen with look at everything
    stranger.sign_in("Ann")
    office.room.access.grant("Ann", "look", "station:Ann")
    mine = stranger.get(f"/trace/{claim}").text
    office.room.access.withdraw("Ann", "look", "station:Ann")
    assert "It wrote State." in mine
    assert "Because it collects:" not in mine


def test_the_way_of_a_form_has_everyone_who_wrote_on_it(office: Served, clerk: Browser) -> None:
    ann = office.room.stations.admitted("Ann")
    key = ann.create("CLAIM", {"No": 6003, "Claimant": "x"})
    for actor, field, value in (
        ("ann", "Loss", "a"),
        ("ann", "State", "s"),
        ("olga", "Loss", "b"),
        ("ann", "Loss", "c"),
    ):
        with office.room.store.acting(actor):
            ann.modify(key, {field: value})
    (stop,) = _stops(office.room.journal.trace_values(key))
    assert [(one.by, one.fields) for one in stop.writes] == [
        ("Ann (ann)", ["Loss"]),
        ("Ann (ann)", ["State"]),
        ("Ann (olga)", ["Loss"]),
        ("Ann (ann)", ["Loss"]),
    ]
    times = [event.time for event in office.room.journal.trace(key) if event.verb == "modify"]
    assert [one.at for one in stop.writes] == times, "each writing has its own"
    assert stop.written["Loss"] == "Ann (ann)"
    for address in (f"/trace/{key}", f"/desk/Ann/forms/{key}"):
        text = " ".join(re.sub("<[^>]*>", " ", clerk.get(address).text).split())
        assert "wrote State" in text
        assert "Ann (olga) wrote Loss" in text


def test_the_way_says_what_was_done_in_words_that_people_use(office: Served, clerk: Browser) -> None:
    ann, ben = (office.room.stations.admitted(name) for name in ("Ann", "Ben"))
    key = ann.create("CLAIM", {"No": 6004, "Claimant": "x"})
    ann.ship(key, "Ben")
    ann.take_back(key)
    ann.ship(key, "Ben")
    ben.get(keys=[key])
    done = ["made", "shipped", "taken back", "shipped", "got"]
    assert [stop.done for stop in _stops(office.room.journal.trace_values(key))] == done
    shown = clerk.get(f"/trace/{key}").text
    assert "taken back by Ann" in shown
    assert "get by" not in shown
    way = " ".join(re.sub("<[^>]*>", " ", clerk.get(f"/desk/Ben/forms/{key}").text).split())
    assert "Ann took it back" in way
    assert "Ben got it" in way


def test_what_led_to_what_opens(office: Served, clerk: Browser) -> None:
    ann = office.room.stations.admitted("Ann")
    key = ann.create("CLAIM", {"No": 6002, "Claimant": "x"})
    (first, *_) = ann.copy(key, 3)
    few = clerk.get(f"/trace/{key}").text
    assert "<details open><summary>" in few
    assert "led to 3" in few
    ann.copy(first, 40)
    many = clerk.get(f"/trace/{key}").text
    assert many.count("<details open>") == 1  # what this one led to
    assert many.count("<details>") == 1  # what that led to, folded
    assert "led to 40" in many
    assert clerk.get(f"/trace/{first}").text.count("<details open>") == 2  # the way to it is open


def told(number: int, *causes: int) -> StoryMessage:
    return StoryMessage(str(number), None, None, 0, tuple(map(str, causes)), (), None, None, ())


def test_a_story_is_nested_by_causes_that_are_known() -> None:
    """Message 9 may not be seen; what it led to is not shown below its sister."""
    roots = _tree(Story("1", (told(1), told(2, 1), told(3, 2), told(4, 9), told(5, 9, 2)), True))
    assert [(node.told.key, node.count) for node in roots] == [("1", 3), ("4", 0)]
    assert [node.told.key for node in roots[0].led_to[0].led_to] == ["3", "5"]
    assert roots[0].has("3")
    assert not roots[0].has("4")


def test_a_very_long_story_is_not_nested_without_end() -> None:
    (node,) = _tree(Story("0", (told(0), *(told(number, number - 1) for number in range(1, 2_000))), True))
    levels, here = 1, node
    while here.led_to:
        levels, here = levels + 1, here.led_to[0]
    assert levels == CAUSES_NESTED_MAX + 1
    assert node.count == 1_999
