"""A message: its body by its format, what happened to it, and its file."""

from __future__ import annotations

from tests.interfaces.http.conftest import Served
from tests.interfaces.web.conftest import PASSWORD, Browser, browser, fail


def test_a_message_tells_its_body_properties_attempts_and_story(shop: Served, operator: Browser) -> None:
    room = shop.room
    room.queues.create("work")
    key = room.send("work", {"a": {"b": 1}}, properties={"colour": "red"}).key
    (leased,) = room.consumers.receive_many("work", count=1, lease=60)
    leased.fail("no paper")
    text = operator.get(f"/messages/{key}").text
    for said in ("<details open>", "colour", "no paper", "lease", "put", 'Attempts <span class="number">1'):
        assert said in text
    kept = operator.get(f"/messages/{key}?file=1")
    assert kept.headers["content-disposition"] == f'attachment; filename="{key}.json"'
    assert kept.text == '{"a":{"b":1}}'


def test_what_caused_it_is_named_and_what_is_gone_keeps_its_history(shop: Served, operator: Browser) -> None:
    (key,) = fail(shop.room, "many")
    error = shop.room.journal.show(key)
    assert f"/web/messages/{error.cause}" in operator.get(f"/messages/{key}").text
    shop.room.queues.create("short", keep_processed=False)
    gone = shop.room.send("short", "x").key
    shop.room.receive("short")
    assert "no longer kept" in operator.get(f"/messages/{gone}").text
    assert operator.get("/messages/99999.99999").status_code == 404


def test_whoever_may_not_look_everywhere_it_was_sees_nothing(shop: Served) -> None:
    shop.room.flows.add_principal("some", PASSWORD)
    shop.room.access.grant("some", "look", "answers")
    key = shop.room.send("stock", "secret words").key
    shop.room.consumers.move("stock", to="answers", keys=[key])
    some = browser(shop.url)
    some.sign_in("some")
    refused = some.get(f"/messages/{key}")
    assert refused.status_code == 403
    assert "secret words" not in refused.text
    some.client.close()
