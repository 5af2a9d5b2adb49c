"""What is refused on pages is said in words of pages."""

from __future__ import annotations

import pytest
from tests.interfaces.http.conftest import Served
from tests.interfaces.web.conftest import Browser

from postroom.errors import PostroomError
from postroom.interfaces.web import wording

COMMANDS = ("postroom why-not", "openapi", "--room", "POSTROOM_URL", "postroom enable", "--help", "`")


def subclasses(of: type[PostroomError]) -> list[type[PostroomError]]:
    return [below for each in of.__subclasses__() for below in (each, *subclasses(each))]


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("/overview", "Ann may not do this: it needs the right look for everything (there is no such grant)."),
        ("/nonsense", "there is no such page or button here: /nonsense."),
        ("/queues/nope", "Ann may not do this: it needs the right look for nope"),
        ("/messages/x", "keys look like 00001.00042"),
    ],
)
def test_a_refused_address_says_what_to_do_on_a_page(stranger: Browser, address: str, said: str) -> None:
    assert stranger.sign_in("Ann").status_code == 200
    found = stranger.get(address)
    assert found.status_code >= 400
    assert said in found.text
    assert '<nav id="pages"' in found.text  # and the way to other pages
    assert [each for each in COMMANDS if each in found.text] == []


def test_a_queue_that_is_not_there_or_is_held_is_told_without_commands(office: Served, clerk: Browser) -> None:
    found = clerk.get("/queues/nope")
    assert "there is no queue nope." in found.text
    assert [each for each in COMMANDS if each in found.text] == []
    office.room.queues.create("stopped", password="lamp1")
    office.room.queues.disable("stopped", password="lamp1")
    for right in ("send", "manage"):
        office.room.access.grant("clerk", right, "stopped")
    refused = clerk.post("/queues/stopped", do="send", body="x")
    assert "stopped is on hold (full) and does not" in refused.text
    assert "enable it on the page of the queue, with its password" in refused.text
    assert "Password of the queue" in refused.text
    assert [each for each in COMMANDS if each in refused.text] == []


def test_no_advice_of_a_page_names_a_command() -> None:
    for error in subclasses(PostroomError):
        said = wording.without_commands(error.template), wording._ADVICE.get(error.code, "")
        assert not any(wording._COMMAND.search(text) for text in said), error.code
