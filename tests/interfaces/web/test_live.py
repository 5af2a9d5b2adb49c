"""Live parts: a browser is told that something happened at its station, and of nothing else."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import ExitStack
from html import unescape
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, expect
from tests.interfaces.http.conftest import Served
from tests.interfaces.web.conftest import Browser, browser

from postroom.interfaces import web
from postroom.limits import LIVE_BEHIND_MAX

TEMPLATES = Path(web.__file__).parent / "templates"


def test_a_follower_is_told_of_its_station_alone(office: Served, clerk: Browser) -> None:
    ben, director = (office.room.stations.admitted(name) for name in ("Ben", "Director"))
    with clerk.client.stream("GET", f"{office.url}/web/live?topic=station:Director") as answer:
        lines = answer.iter_lines()
        assert answer.headers["content-type"] == "text/event-stream"
        assert next(lines) == ": still here"
        ben.create("APPROVAL", {"No": 1})
        before = office.room.journal.last(1)[0].seq
        director.create("APPROVAL", {"No": 1})
        blank, number, *rest = [next(lines) for _ in range(4)]
        assert (blank, rest) == ("", ["event: changed", "data: 1"])
        assert int(number.removeprefix("id: ")) > before


def followed_from(page: str) -> str:
    """The address that the script of a page follows."""
    there, seen = re.findall(r'data-live-(?:at|seen)="([^"]*)"', page)
    return f"{unescape(there).removeprefix('/web')}&seen={seen}"


def heard(visitor: Browser, address: str, **head: str) -> int:
    """The number of the first that a follower is told."""
    with visitor.client.stream("GET", f"{visitor.url}/web{address}", headers=head, timeout=8) as answer:
        return next(int(line.removeprefix("id: ")) for line in answer.iter_lines() if line.startswith("id: "))


def test_what_came_between_a_page_and_its_connection_is_told_at_once(office: Served, clerk: Browser) -> None:
    """Also what came while a connection was lost, of which a browser says how far it has heard."""
    ann, ben = (office.room.stations.admitted(name) for name in ("Ann", "Ben"))
    key = ben.create("APPROVAL", {"No": 1})
    there = followed_from(clerk.get("/desk/Ann").text)
    before = office.room.journal.last(1)[0].seq
    ben.ship(key, "Ann")
    newest = office.room.journal.last(1)[0].seq
    assert before < heard(clerk, there) <= newest
    ann.get()
    ann.ship(key, "Ben")
    assert heard(clerk, there, **{"last-event-id": str(newest)}) > newest


def test_of_very_much_a_page_is_told_once(office: Served, clerk: Browser) -> None:
    there = followed_from(clerk.get("/overview").text)
    office.room.send_many("orders", [{"order": number} for number in range(LIVE_BEHIND_MAX + 1)])
    newest = office.room.journal.last(1)[0].seq
    assert heard(clerk, there) == newest
    assert clerk.get("/live?topic=room&seen=all").status_code == 400


# --- in a real browser ---

#: The pointer is on its way whenever the page has been told what it shows now; counts how often it was.
POINTED = """let told = 0; window.pointed = true; const real = fetch;
window.fetch = async (...all) => {
  const answer = await real(...all), text = answer.text.bind(answer);
  answer.text = async () => {
    const said = await text();
    if (pointed) dispatchEvent(new Event('pointermove'));
    setTimeout(() => { document.body.dataset.told = ++told; });
    return said;
  };
  return answer;
}"""


def live(page: Page, address: str) -> None:
    page.goto(address)
    expect(page.locator(".live span")).to_have_text("live")


def test_what_was_ticked_and_written_stays_when_its_part_changes(stage: Served, page: Page) -> None:
    director = stage.room.stations.admitted("Director")
    chosen = director.create("APPROVAL", {"No": 88001})
    live(page, f"{stage.url}/web/desk/Director?type=APPROVAL")
    page.get_by_label(f"Choose {chosen}").check()
    page.get_by_label("Ship the chosen to").fill("Ben")
    page.get_by_label("Key or name").focus()
    new = director.create("APPROVAL", {"No": 88002})
    expect(page.locator(f"#held [data-row='{new}']")).to_be_visible()
    expect(page.get_by_label(f"Choose {chosen}")).to_be_checked()
    expect(page.get_by_label("Ship the chosen to")).to_have_value("Ben")
    page.get_by_label("Choose all").check()  # which works in the new part, too
    expect(page.get_by_label(f"Choose {new}")).to_be_checked()


def test_a_list_does_not_move_under_the_pointer_and_changes_when_it_rests(stage: Served, page: Page) -> None:
    director = stage.room.stations.admitted("Director")
    first = director.create("APPROVAL", {"No": 88003})
    live(page, f"{stage.url}/web/desk/Director?type=APPROVAL")
    row = page.locator(f"#held [data-row='{first}']")
    row.hover()
    page.evaluate(POINTED)
    new = director.create("APPROVAL", {"No": 88004})
    expect(page.locator("body")).to_have_attribute("data-told", "2")  # it was asked again, as nothing had been changed
    expect(page.locator(f"#held [data-row='{new}']")).to_have_count(0)
    page.evaluate("pointed = false")
    expect(page.locator(f"#held [data-row='{new}']")).to_be_visible()


def test_pages_that_nobody_looks_at_leave_room_for_others(stage: Served, page: Page) -> None:
    """A browser has six connections to a server, and each page that is live needs one."""
    hide = "Object.defineProperty(document, 'visibilityState', { value: '%s', configurable: true });"
    turn = hide + "document.dispatchEvent(new Event('visibilitychange'))"
    with ExitStack() as windows:
        others = [windows.enter_context(page.context.new_page()) for _ in range(6)]
        for other in others:
            live(other, f"{stage.url}/web/desk/Director?type=APPROVAL")
            other.evaluate(turn % "hidden")
        live(page, f"{stage.url}/web/desk/Director")
        new = stage.room.stations.admitted("Director").create("APPROVAL", {"No": 88005})
        expect(page.locator(f"#held [data-row='{new}']")).to_be_visible()
        expect(others[0].locator(f"#held [data-row='{new}']")).to_have_count(0)
        others[0].evaluate(turn % "visible")
        expect(others[0].locator(f"#held [data-row='{new}']")).to_be_visible()  # what came meanwhile


def test_only_whoever_may_follow_is_told(office: Served, clerk: Browser, stranger: Browser) -> None:
    assert stranger.get("/live?topic=room").url.path == "/web/sign-in"
    stranger.sign_in("nobody")
    for topic in ("room", "station:Ann"):
        assert stranger.get(f"/live?topic={topic}").status_code == 403
    for topic in ("", "station:", "queue:x", "<script>"):
        assert clerk.get(f"/live?topic={topic}").status_code == 400


def test_a_follower_whose_session_or_right_ends_is_told_no_more(office: Served) -> None:
    ben = office.room.stations.admitted("Ben")
    office.room.flows.add_principal("guest", "correct horse")
    ends: list[Callable[[], object]] = [
        lambda: office.room.access.withdraw("guest", "work", "Ben"),
        lambda: office.room.access.end_sessions("guest"),
    ]
    for end in ends:
        office.room.access.grant("guest", "work", "Ben")
        follower = browser(office.url)
        follower.sign_in("guest")
        with follower.client.stream("GET", f"{office.url}/web/live?topic=station:Ben") as answer:
            lines = answer.iter_lines()
            next(lines)
            end()
            ben.create("APPROVAL", {"No": 1})
            assert "event: changed" not in list(lines)
        follower.client.close()


def test_a_topic_is_no_place_to_write(office: Served, clerk: Browser) -> None:
    found = httpx.post(f"{office.url}/web/live?topic=room", trust_env=False, headers={"origin": office.url})
    assert found.status_code == 401


@pytest.mark.parametrize("file", sorted(TEMPLATES.glob("*.html")), ids=lambda file: file.stem)
def test_what_is_counted_in_the_head_of_a_page_changes_with_it(file: Path) -> None:
    text = file.read_text()
    heads = [line for line in text.splitlines() if 'class="head"' in line and ("|count" in line or "state(" in line)]
    if "data-live>" in text.replace('id="counts" data-live>', ""):  # a part of the page is live
        assert all('id="counts" data-live>' in head for head in heads), heads
