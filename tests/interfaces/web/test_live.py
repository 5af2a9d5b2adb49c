"""Live parts: a browser is told that something happened at its station, and of nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from tests.interfaces.http.conftest import Served
from tests.interfaces.web.conftest import Browser, browser

from postroom.interfaces import web

TEMPLATES = Path(web.__file__).parent / "templates"


def test_a_follower_is_told_of_its_station_alone(office: Served, clerk: Browser) -> None:
    ben, director = (office.room.stations.admitted(name) for name in ("Ben", "Director"))
    with clerk.client.stream("GET", f"{office.url}/web/live?topic=station:Director") as answer:
        lines = answer.iter_lines()
        assert answer.headers["content-type"] == "text/event-stream"
        assert next(lines) == ": still here"
        ben.create("APPROVAL", {"No": 1})
        director.create("APPROVAL", {"No": 1})
        assert [line for line in (next(lines), next(lines), next(lines)) if line] == ["event: changed", "data: 1"]


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
