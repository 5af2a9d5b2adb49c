"""Failures: grouped by cause, tried before they are sent again, sent again once; and what stands in them stays text."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from tests.interfaces.http.conftest import Served
from tests.interfaces.web.conftest import PASSWORD, Browser, ask, browser, fail, finished
from tests.interfaces.web.stations.test_desk import PAYLOADS, Shape

from postroom.interfaces.web.operating.failures import causes, failures
from postroom.room import Postroom


def answers(room: Postroom) -> list[str]:
    return [message.body for message in room.queues.peek("answers")]


def tried_of(page: httpx.Response) -> str:
    """What a page that shows a dry run has to say for the retry."""
    return str(re.findall(r'name="tried" value="(\w+)"', page.text)[0])


def retried(visitor: Browser, key: str, body: str) -> httpx.Response:
    """A dry run, and then what was tried."""
    tried = visitor.post("/failures", do="try", key=key, body=body)
    return visitor.post("/failures", do="retry", key=key, body=body, tried=tried_of(tried))


def all_tried(visitor: Browser, key: str, **edit: str) -> tuple[str, str]:
    """A dry run of all: its address, and what came of it."""
    begun = visitor.post("/failures", do="try-all", key=key, **edit)
    return f"/failures?{begun.url.query.decode()}", finished(visitor, begun)


def test_nothing_is_sent_again_without_a_dry_run_of_what_is_sent(shop: Served, operator: Browser) -> None:
    keys = fail(shop.room, "many", "few")
    assert "Retry this one" not in operator.get(f"/failures?key={keys[0]}").text
    untried = operator.post("/failures", do="retry", key=keys[0], body=ask("4"))
    assert untried.status_code == 409
    assert "&lt;answer&gt;5&lt;/answer&gt;" in untried.text  # it was tried instead
    failing = operator.post("/failures", do="try", key=keys[0], body=ask("none"))
    assert 'name="tried"' not in failing.text
    other = operator.post("/failures", do="retry", key=keys[0], body=ask("6"), tried=tried_of(untried))
    assert other.status_code == 409  # it was edited after the dry run
    another = operator.post("/failures", do="retry", key=keys[1], body=ask("4"), tried=tried_of(untried))
    assert another.status_code == 409
    for asked in ("", "?asked=x"):
        assert operator.post(f"/failures{asked}", do="retry-all", key=keys[0]).status_code == 400
    address, _ = all_tried(operator, keys[0], find="many", put="4")
    assert operator.post(address, do="retry-all", key=keys[0], find="few", put="4").status_code == 400
    assert [each.key for each in failures(shop.room)] == keys


def test_all_of_a_cause_are_tried_however_many(
    shop: Served, operator: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("postroom.interfaces.web.visit.DESK_ROWS", 2)
    keys = fail(shop.room, *(f"{number},0" for number in range(5)))
    address, tried = all_tried(operator, keys[0], find=",0", put="0")
    assert "5 work" in tried
    assert "Sent 5 messages again:" in operator.post(address, do="retry-all", key=keys[0], find=",0", put="0").text


def test_what_is_not_grouped_is_told_and_the_next_page_has_it(
    shop: Served, operator: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("postroom.interfaces.web.operating.failures.FAILURES_SHOWN_MAX", 3)
    keys = fail(shop.room, *(f"{number},0" for number in range(5)))
    first = operator.get("/failures").text
    assert keys[2] in plain(first)
    assert keys[3] not in plain(first)
    assert "has 5 messages" in plain(first)
    (there,) = re.findall(r'href="/web(/failures\?of=errors[^"]*)"', first)
    rest = operator.get(there.replace("&amp;", "&"))
    assert (keys[2] in plain(rest.text), keys[3] in plain(rest.text), keys[4] in plain(rest.text)) == (
        False,
        True,
        True,
    )
    assert "has 5 messages" not in plain(rest.text)


def plain(page: str) -> str:
    """The text of a page."""
    return " ".join(re.sub(r"<[^>]*>", "", page).split())


REPAIR = """type REPAIR
| No: ________   KEY: ___________ |
| Way: __________________________ |
field No  int    required
field KEY key    automatic
field Way string free
"""
SEND_OFF = """procedure send_off at Ann
  precondition repair : REPAIR
    No: > 10
  destination off on repair copy 0 ship ?repair.Way
"""


def fail_at_ann(room: Postroom, folder: Path) -> str:
    """A procedure at Ann fails with a form; returns the key of the form."""
    for name in ("Ann", "Ben"):
        room.stations.add(name, PASSWORD)
    for name, text in (("repair.form", REPAIR), ("send_off.form", SEND_OFF)):
        (folder / name).write_text(text)
        room.load(folder / name)
    room.stations.enable_procedure("send_off")
    key = room.stations.admitted("Ann").create("REPAIR", No=11, Way="Nowhere")
    room.run(until_idle=True)
    return key


def test_what_a_procedure_could_not_do_is_a_failure_too(shop: Served, operator: Browser, tmp_path: Path) -> None:
    room = shop.room
    key = fail_at_ann(room, tmp_path)
    (error,) = room.stations.procedure_errors()
    assert (error.station, error.procedure, error.messages) == ("Ann", "send_off", (key,))
    (failed,) = failures(room)
    assert (failed.key, failed.what, failed.forms) == (error.key, error.description, (key,))
    shown = operator.get("/failures").text
    for said in (error.code, "procedure send_off", f"/web/desk/Ann/forms/{key}"):
        assert said in shown
    for action in ("try", "retry", "try-all", "retry-all"):  # it is nothing that was sent
        assert operator.post("/failures", do=action, key=error.key, body="x").status_code in (400, 404)
    looker = browser(shop.url)
    looker.sign_in("looker")
    assert looker.post("/failures", do="done", key=error.key, station="Ann").status_code == 403
    looker.client.close()
    room.stations.admitted("Ann").modify(key, Way="Ben")  # whoever writes on it offers it again
    room.run(until_idle=True)
    assert [item.image.key for item in room.stations.admitted("Ben").inventory(mail=True)] == [key]
    assert "out of the dossier" in operator.post("/failures", do="done", key=error.key, station="Ann").text
    assert failures(room) == []


def test_a_dry_run_asks_the_counter_that_takes_from_the_queue(shop: Served, operator: Browser, tmp_path: Path) -> None:
    """It says what is still wrong, by the counter's name, until nothing is; and then what is made is what was shown."""
    room = shop.room
    room.stations.add("Ann", PASSWORD)
    room.queues.create("online")
    (tmp_path / "web.form").write_text(REPAIR + "counter web at Ann takes REPAIR from online\n")
    room.load(tmp_path / "web.form")
    room.send("online", {"Way": "Ben"}, format="json")
    room.run(until_idle=True)
    (failed,) = failures(room)
    assert (failed.queue, failed.rule, failed.culprit) == ("online", "web", "counter")
    shown = plain(operator.get("/failures").text)
    assert "counter web" in shown
    assert "rule web" not in shown.lower()
    wrong = operator.post("/failures", do="try", key=failed.key, body='{"No": "ten"}')
    assert "fails again" in wrong.text
    assert 'name="tried"' not in wrong.text
    right = operator.post("/failures", do="try", key=failed.key, body='{"No": 12}')
    assert "works" in plain(right.text)
    assert "would enqueue mailbox:Ann" in plain(right.text)
    retried(operator, failed.key, '{"No": 12}')
    room.run(until_idle=True)
    assert failures(room) == []
    (mail,) = room.stations.admitted("Ann").inventory(mail=True)
    assert mail.image.fields["No"] == 12


def test_a_form_is_written_on_where_it_is(shop: Served, operator: Browser, tmp_path: Path) -> None:
    """At hand, in the mailbox, or at another station."""
    room = shop.room
    fail_at_ann(room, tmp_path)
    ann, ben = (room.stations.admitted(name) for name in ("Ann", "Ben"))
    key = ben.create("REPAIR", No=12, Way="Nowhere")
    ben.ship(key, "Ann")
    room.run(until_idle=True)
    (mine,) = [error.key for error in room.stations.procedure_errors() if error.messages == (key,)]

    def links() -> list[tuple[str, str]]:
        page = operator.get(f"/failures?key={mine}").text
        return re.findall(r'<a class="end" href="/web([^"]*)">([^<]*)<', page)

    assert links() == [(f"/desk/Ann?mail={key}", "Get it first")]
    desk = operator.get(links()[0][0])
    assert f'<input type="hidden" name="key" value="{key}"><button class="main" name="do" value="get"' in desk.text
    ann.get(keys=[key])
    assert links() == [(f"/desk/Ann/forms/{key}", "Write on it")]
    assert operator.get(links()[0][0]).status_code == 200
    ann.ship(key, "Ben")
    assert links() == []


def test_a_failure_is_found_edited_tried_and_sent_again_once(shop: Served, operator: Browser) -> None:
    room = shop.room
    keys = fail(room, "many", "few", "1.5")
    (group,) = causes(failures(room))
    assert group.what == "Cannot convert string \u2026 to an integer"
    assert [each.key for each in group.failed] == keys
    assert group.first <= group.last
    shown = operator.get(f"/failures?key={keys[1]}").text
    for said in ("Cannot convert string", "FORG0001", "look", "few", "shop.demaq:6"):
        assert said in shown
    journal = room.journal.last(1)[0].seq
    wrong = operator.post(f"/failures?key={keys[1]}", do="try", key=keys[1], body=ask("none"))
    assert wrong.status_code == 200
    assert "fails again" in wrong.text
    works = operator.post(f"/failures?key={keys[1]}", do="try", key=keys[1], body=ask("4"))
    assert "&lt;answer&gt;5&lt;/answer&gt;" in works.text
    assert ask("4").replace("<", "&lt;").replace(">", "&gt;") in works.text  # it is still in the field
    assert room.journal.last(1)[0].seq == journal  # nothing was changed
    retry = {"do": "retry", "key": keys[1], "body": ask("4"), "tried": tried_of(works)}
    done = operator.post(f"/failures?key={keys[1]}", **retry)
    assert "Sent again to stock." in done.text
    again = operator.post(f"/failures?key={keys[1]}", **retry)
    assert again.status_code == 410
    assert "Nothing was changed" in again.text
    room.run(until_idle=True)
    assert answers(room) == ["<answer>5</answer>"]
    (made,) = room.queues.peek("answers")
    story = [told.key for told in room.journal.trace(made.key, causes=True).messages]
    assert keys[1] in story
    assert [each.key for each in failures(room)] == [keys[0], keys[2]]


def test_what_does_not_fit_is_refused_and_nothing_is_changed(shop: Served, operator: Browser) -> None:
    (key,) = fail(shop.room, "many")
    for action in ("try", "retry"):
        refused = operator.post("/failures", do=action, key=key, body="<ask>")  # it cannot be tried
        assert refused.status_code == 400
        assert "Nothing was changed" in refused.text
    assert operator.post("/failures", do="retry", key="99999.99999", body="x").status_code == 404
    sound = shop.room.send("answers", "<ok/>").key
    assert operator.post("/failures", do="retry", key=sound, body="x").status_code == 400
    shop.room.queues.set_password("stock", password="key")
    tried = tried_of(operator.post("/failures", do="try", key=key, body=ask("1")))
    shop.room.queues.disable("stock", password="key")
    held = operator.post("/failures", do="retry", key=key, body=ask("1"), tried=tried)
    assert held.status_code == 409
    assert [each.key for each in failures(shop.room)] == [key]


def test_all_of_a_cause_get_the_same_edit_and_the_rest_stays(shop: Served, operator: Browser) -> None:
    keys = fail(shop.room, "1,0", "2,0", "many")
    address, tried = all_tried(operator, keys[0], find=",0", put="0")
    assert "2 work" in tried
    assert "1 does not" in tried
    done = operator.post(address, do="retry-all", key=keys[0], find=",0", put="0")
    assert "Sent 2 messages again, 1 was not" in done.text
    shop.room.run(until_idle=True)
    assert answers(shop.room) == ["<answer>11</answer>", "<answer>21</answer>"]
    assert [each.key for each in failures(shop.room)] == [keys[2]]


def test_another_failure_may_be_looked_at_between_the_dry_run_of_all_and_their_retry(
    shop: Served, operator: Browser
) -> None:
    keys = fail(shop.room, "1,0", "2,0", "many")
    address, _ = all_tried(operator, keys[0], find=",0", put="0")
    assert operator.post(address, do="retry-all", key=keys[0], find=",0", put="1").status_code == 400
    done = operator.post(address, do="retry-all", key=keys[2], find=",0", put="0")
    assert "Sent 2 messages again, 1 was not" in done.text


def test_what_is_refused_when_all_are_sent_again_is_told_and_the_others_go(shop: Served, operator: Browser) -> None:
    keys = fail(shop.room, "1,0", "2,0")
    address, _ = all_tried(operator, keys[0], find=",0", put="0")
    shop.room.queues.set_password("stock", password="pw")
    shop.room.queues.disable("stock", password="pw")
    done = operator.post(address, do="retry-all", key=keys[0], find=",0", put="0").text
    assert "Sent 0 messages again, 2 were not" in done
    assert "hold" in done
    assert len(failures(shop.room)) == 2


def test_dead_letters_are_failures_too(shop: Served, operator: Browser) -> None:
    room = shop.room
    room.queues.create("work")
    room.consumers.set_policy("work", attempts=1)
    room.send("work", {"n": 1}, properties={"colour": "red"})
    (leased,) = room.consumers.receive_many("work", count=1, lease=60)
    leased.fail("no paper in tray 2")
    (failed,) = failures(room)
    assert failed.cause[0] == "no paper in tray \u2026"
    assert "no paper in tray" in operator.get("/failures").text
    tried = operator.post("/failures", do="try", key=failed.key, body='{"n": 2}').text
    assert "No rule and no counter takes what comes to work" in tried
    assert "Sent again to work." in retried(operator, failed.key, '{"n": 2}').text
    (message,) = room.queues.peek("work")
    assert (message.value, dict(message.properties)) == ({"n": 2}, {"colour": "red"})


def test_who_may_only_look_sends_nothing_and_who_may_nothing_sees_nothing(shop: Served) -> None:
    (key,) = fail(shop.room, "many")
    looker, nobody = browser(shop.url), browser(shop.url)
    looker.sign_in("looker")
    nobody.sign_in("nobody")
    shown = looker.get("/failures")
    assert shown.status_code == 200
    assert "This needs the rights" in shown.text
    for action in ("try", "retry", "try-all", "retry-all", "effect"):
        for visitor in (looker, nobody):
            answer = visitor.post("/failures", do=action, key=key, body=ask("1"), effect=1)
            was_tried = action != "retry-all" or visitor is nobody  # nobody who may not has tried anything
            assert answer.status_code == (403 if was_tried else 400), action
    assert nobody.get("/failures").status_code == 403
    assert [each.key for each in failures(shop.room)] == [key]
    for visitor in (looker, nobody):
        visitor.client.close()


def test_payloads_in_a_failure_change_no_structure(shop: Served, operator: Browser) -> None:
    room = shop.room
    room.queues.create("work")
    room.consumers.set_policy("work", attempts=1)
    shapes = []
    for said in ("plain", *PAYLOADS):
        room.send("work", said, properties={"p": said})
        (leased,) = room.consumers.receive_many("work", count=1, lease=60)
        leased.fail(said)
        (failed,) = failures(room)
        page = operator.get(f"/failures?key={failed.key}")
        assert page.status_code == 200
        shapes.append(Shape(page.text).elements)
        room.consumers.purge("work.dead")
    assert all(shape == shapes[0] for shape in shapes)


@pytest.mark.parametrize("dead_letters", [None, "bad"])
def test_a_dead_letter_behind_another_message_is_found(shop: Served, dead_letters: str | None) -> None:
    room = shop.room
    room.queues.create("work")
    room.consumers.set_policy("work", attempts=1, dead_letters=dead_letters)
    room.queues.create(dead_letters or "work.dead")
    room.send(dead_letters or "work.dead", "someone put it here by hand")
    room.send("work", "x")
    (leased,) = room.consumers.receive_many("work", count=1, lease=60)
    leased.fail("no such customer")
    assert [failed.what for failed in failures(room)] == ["no such customer"]


def test_a_failed_message_that_is_gone_is_taken_from_its_error_message(shop: Served, operator: Browser) -> None:
    (key,) = fail(shop.room, "many <b/>")
    shop.room.engine.sweep()
    origin = shop.room.journal.show(key).cause
    assert "no longer kept" in operator.get(f"/messages/{origin}").text
    shown = operator.get(f"/failures?key={key}").text
    assert "&lt;ask&gt;&lt;count&gt;many &lt;b/&gt;&lt;/count&gt;&lt;/ask&gt;" in shown
    assert "Sent again" in retried(operator, key, ask("1")).text
    shop.room.run(until_idle=True)
    assert answers(shop.room) == ["<answer>2</answer>"]


def test_two_who_retry_all_at_once_send_each_message_once(shop: Served, operator: Browser) -> None:
    """Whoever is slower is told how many were sent, not that nothing was changed."""
    keys = fail(shop.room, *(f"{number},0" for number in range(12)))
    others = [browser(shop.url) for _ in range(2)]
    with ThreadPoolExecutor(3) as pool:
        for each in others:
            each.client.cookies.update(operator.client.cookies)
        address, _ = all_tried(operator, keys[0], find=",0", put="0")
        tasks = [pool.submit(each.post, address, do="retry-all", key=keys[0], find=",0", put="0") for each in others]
        done = [task.result() for task in tasks]
    assert {answer.status_code for answer in done} <= {200, 404}
    shop.room.run(until_idle=True)
    assert sorted(answers(shop.room)) == sorted(f"<answer>{number * 10 + 1}</answer>" for number in range(12))
    assert failures(shop.room) == []
    for each in others:
        each.client.close()


TIDES = """create module yard errorqueue errors
create queue tides kind basic mode persistent
create queue notices kind basic mode persistent
create property place as xs:string fixed queue tides value /tide/@place
create property level as xs:string queue tides value "none"
create rule warn for tides
  if (/tide) then do enqueue <notice>{xs:integer(/tide/height) - 2}</notice> into notices
"""


def test_what_a_queue_computes_is_computed_again_for_what_is_sent_again(
    shop: Served, operator: Browser, tmp_path: Path
) -> None:
    """Nobody may set such a property, so a message with one could not be sent again."""
    room = shop.room
    (tmp_path / "yard.demaq").write_text(TIDES)
    room.load(tmp_path / "yard.demaq")
    body = "<tide place='{}'><height>{}</height></tide>"
    room.send("tides", body.format("pier", "high"), format="xml", properties={"level": "spring"})
    room.run(until_idle=True)
    (failed,) = failures(room)
    mended = body.format("quay", "9")
    tried = operator.post("/failures", do="try", key=failed.key, body=mended)
    assert "&lt;notice&gt;7&lt;/notice&gt;" in tried.text
    assert "Sent again to tides." in retried(operator, failed.key, mended).text
    (again,) = room.queues.peek("tides")
    assert (again.properties["place"], again.properties["level"]) == ("quay", "spring")
    assert again.properties["sender"] == "operator"
    room.run(until_idle=True)
    assert [message.body for message in room.queues.peek("notices")] == ["<notice>7</notice>"]
