"""The frame: who gets a page, what it says to the browser, and where a write may come from."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
from tests.interfaces.http.conftest import Served, serving
from tests.interfaces.web.conftest import PASSWORD, Browser, browser, open_office, taken_back, way_back

from postroom.interfaces.web.registry import PAGES
from postroom.interfaces.web.rendering import counted
from postroom.limits import LOGIN_TRIES
from postroom.room import Postroom

PATHS = sorted({page.path for page in PAGES})


def filled(path: str) -> str:
    """A path with something that is there in the place of its names."""
    names = {"station": "Ann", "type": "CLAIM", "key": "00001.00001", "format": "csv", "queue...": "orders"}
    for name, value in names.items():
        path = path.replace("{" + name + "}", value)
    return path


@pytest.mark.parametrize("path", PATHS)
def test_nobody_sees_a_page_without_a_session(office: Served, stranger: Browser, path: str) -> None:
    found = stranger.get(filled(path))
    assert found.status_code == 200
    assert found.url.path == "/web/sign-in"
    refused = stranger.post(filled(path), do="create")
    assert refused.status_code == 401
    assert "Nothing was changed" in refused.text


@pytest.mark.parametrize("page", [page for page in PAGES if page.right is not None], ids=lambda page: page.path)
def test_a_page_needs_its_right(office: Served, stranger: Browser, page: object) -> None:
    path = filled(page.path)  # type: ignore[attr-defined]
    assert stranger.sign_in("nobody").status_code == 200
    for answer in (stranger.get(path), *(stranger.post(path, do=name) for name in page.actions)):  # type: ignore[attr-defined]
        assert answer.status_code == 403
        assert "right-missing" in answer.text
        assert "may not" in answer.text


def test_a_user_without_rights_sees_that_there_is_nothing(office: Served, stranger: Browser) -> None:
    found = stranger.sign_in("nobody")
    assert "There is nothing here that you may see" in found.text
    assert "<li>" not in found.text


@pytest.mark.parametrize("path", [*PATHS, "/sign-in", "/nowhere", "/static/0/style.css", "/static/0/secret"])
def test_every_answer_has_the_headers_of_a_page(office: Served, clerk: Browser, path: str) -> None:
    for answer in (clerk.get(filled(path)), clerk.post(filled(path), do="x")):
        said = answer.headers
        assert "script-src 'self';" in said["content-security-policy"]
        assert "unsafe" not in said["content-security-policy"]
        assert "frame-ancestors 'none'" in said["content-security-policy"]
        assert said["x-content-type-options"] == "nosniff"
        assert said["x-frame-options"] == "DENY"
        assert said["referrer-policy"] == "same-origin"
        assert said["cross-origin-opener-policy"] == "same-origin"
        assert ("no-store" in said["cache-control"]) or path.endswith("style.css")


def test_every_answer_of_a_file_can_be_kept_and_names_its_type(clerk: Browser) -> None:
    for name, type in (("style.css", "text/css"), ("pages.js", "text/javascript"), ("icon.svg", "image/svg+xml")):
        found = clerk.get(f"/static/x/{name}")
        assert found.status_code == 200
        assert found.headers["content-type"].startswith(type)
        assert "immutable" in found.headers["cache-control"]


def test_a_page_asks_nothing_of_another_host(clerk: Browser) -> None:
    text = clerk.get("/you").text
    assert "http://" not in text
    assert "https://" not in text
    assert "style=" not in text
    assert "<script>" not in text


ELSEWHERE = [
    {"origin": "https://evil.example"},
    {"origin": "null"},
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site"},
    {"sec-fetch-site": "none"},
    {},
]


@pytest.mark.parametrize("headers", ELSEWHERE, ids=str)
def test_a_write_from_another_site_is_refused(office: Served, clerk: Browser, headers: dict[str, str]) -> None:
    found = clerk.client.post(f"{office.url}/web/you", data={"do": "end"}, headers=headers)
    assert found.status_code == 403
    assert "request-refused" in found.text
    assert clerk.get("/you").url.path == "/web/you"  # the session goes on


def test_other_methods_are_refused(office: Served, clerk: Browser) -> None:
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS"):
        assert clerk.client.request(method, f"{office.url}/web/you").status_code == 405


def test_a_browser_that_asks_for_the_server_comes_to_the_pages(office: Served, stranger: Browser) -> None:
    assert httpx.get(office.url, trust_env=False).headers["location"] == "/web/"


def test_after_sign_in_one_is_where_one_wanted_to_be(office: Served, stranger: Browser) -> None:
    asked = stranger.get("/you?x=1")
    assert dict(asked.url.params) == {"to": "/web/you?x=1"}
    found = stranger.post("/sign-in", name="clerk", password=PASSWORD, to="/web/you?x=1")
    assert str(found.url) == f"{office.url}/web/you?x=1"


@pytest.mark.parametrize(
    "to", ["https://evil.example/", "//evil.example", "/web/\\evil", "/web/\r\nSet-Cookie: a=b", "/web/ x", "web/"]
)
def test_sign_in_leads_nowhere_else(office: Served, to: str) -> None:
    with httpx.Client(trust_env=False) as client:
        said = {"name": "clerk", "password": PASSWORD, "to": to}
        found = client.post(f"{office.url}/web/sign-in", data=said, headers={"origin": office.url})
    assert found.headers["location"] == "/web/"


def test_the_cookie_is_for_the_server_alone(office: Served) -> None:
    with httpx.Client(trust_env=False) as client:
        said = {"name": "clerk", "password": PASSWORD}
        found = client.post(f"{office.url}/web/sign-in", data=said, headers={"origin": office.url})
    cookie = found.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    assert "Path=/" in cookie
    assert "Domain" not in cookie


def test_a_password_that_is_wrong_is_said_to_be_and_no_more(office: Served, stranger: Browser) -> None:
    wrong, unknown = stranger.sign_in("clerk", "wrong"), stranger.sign_in("nowhere", "wrong")
    assert wrong.status_code == unknown.status_code == 403
    assert "The name or the password is wrong." in wrong.text
    assert wrong.text.replace("clerk", "nowhere") == unknown.text


def test_whoever_guesses_is_told_when_to_come_again(office: Served, stranger: Browser) -> None:
    tried = [stranger.sign_in("guessed", "wrong") for _ in range(LOGIN_TRIES + 1)]
    assert [answer.status_code for answer in tried] == [403] * LOGIN_TRIES + [429]
    seconds = int(tried[-1].headers["retry-after"])
    assert seconds >= 1
    assert f"wait {counted(seconds, 'second')}, then try again." in tried[-1].text
    assert 'name="password"' in tried[-1].text  # and can do so there
    assert 'value="guessed"' in tried[-1].text
    assert tried[-1].headers["content-type"].startswith("text/html")


def test_signing_out_ends_the_session_at_once(office: Served, stranger: Browser) -> None:
    stranger.sign_in("clerk")
    cookie = dict(stranger.client.cookies)
    assert stranger.post("/sign-out").url.path == "/web/sign-in"
    stranger.client.cookies.update(cookie)  # whoever has kept it has nothing
    assert stranger.get("/you").url.path == "/web/sign-in"


def test_signing_out_everywhere_ends_all_sessions(office: Served, stranger: Browser) -> None:
    other = browser(office.url)
    stranger.sign_in("Ben")
    other.sign_in("Ben")
    assert other.get("/you").url.path == "/web/you"
    stranger.post("/you", do="end")
    assert other.get("/you").url.path == "/web/sign-in"
    other.client.close()


def test_another_password_and_the_removal_of_a_user_end_sessions(office: Served, stranger: Browser) -> None:
    office.room.flows.add_principal("temp", PASSWORD)
    stranger.sign_in("temp")
    office.room.flows.add_principal("temp", "another", replace=True)
    assert stranger.get("/you").url.path == "/web/sign-in"
    stranger.sign_in("temp", "another")
    assert stranger.get("/you").url.path == "/web/you"
    office.room.flows.remove_principal("temp")
    assert stranger.get("/you").url.path == "/web/sign-in"


def test_a_grant_has_effect_at_the_next_page(office: Served, stranger: Browser) -> None:
    office.room.flows.add_principal("temp", PASSWORD)
    stranger.sign_in("temp")
    assert "send" not in stranger.get("/you").text.split("<main")[1]
    office.room.access.grant("temp", "send", "orders")
    assert "orders" in stranger.get("/you").text
    office.room.flows.remove_principal("temp")


def test_a_theme_is_kept(office: Served, clerk: Browser) -> None:
    assert "data-theme" not in clerk.get("/you").text
    assert 'data-theme="dark"' in clerk.post("/theme", theme="dark", back="/web/you").text
    assert "data-theme" not in clerk.post("/theme", theme="<script>", back="/web/you").text


def test_a_form_that_is_too_large_or_not_one_is_refused(office: Served, clerk: Browser) -> None:
    head = {"origin": office.url, "content-type": "application/x-www-form-urlencoded"}
    for content, status in ((b"a=%ff", 400), (b"a&" * 3000, 400), (b"a=" + b"x" * 9_000_000, 413), (b"\xff", 400)):
        found = clerk.client.post(f"{office.url}/web/you", content=content, headers=head)
        assert found.status_code == status


def test_an_action_that_is_not_there_changes_nothing(clerk: Browser) -> None:
    found = clerk.post("/you", do="<script>alert(1)</script>")
    assert found.status_code == 404
    assert "<script>alert" not in found.text
    assert "Nothing was changed" in found.text


ODD = ["\0", "%00", "../../etc/passwd", "'; --", "\u202e", "é" * 3000, "-1", "9" * 20, "{{7*7}}", " ", "[", "\ud7ff"]
#: What addresses ask for, and what forms send, on any page.
ASKED = """key id state file property value text from after before verb mail type all name stop open find scope some
    number q asked new field:No field:Loss""".split()
SENT = """body format properties text principal verb object id days find effect key to dossier count into seen field:No
    field:Odd x name domain arc source target func pattern result space procedure station s0.name s0.of s0.field:No
    s1.stations s2.where add.kind add.of add.name""".split()
KINDS = {"s0.kind": "precondition", "s1.kind": "origin", "s2.kind": "destination"}


@pytest.mark.parametrize(
    "odd",
    [ODD[0], "é" * 200, *(pytest.param(odd, marks=pytest.mark.slow) for odd in ODD[1:])],
    ids=lambda odd: ascii(odd)[:20],
)
def test_no_odd_text_makes_a_page_fail(office: Served, clerk: Browser, odd: str) -> None:
    """In any name of a path, any field of a query, any field of a form: a typed refusal at worst."""
    office.room.access.grant("clerk", "work", "*")
    there = quote(odd, safe="")[:1500]
    asked = "&".join(f"{name}={there}" for name in ASKED)
    fields = {**dict.fromkeys(SENT, odd), **KINDS}
    for page in PAGES:
        paths = [filled(page.path), re.sub(r"\{[\w.]+\}", lambda _: there, page.path)]
        for path in paths:
            assert clerk.get(path).status_code < 500, path
            assert clerk.get(f"{path}?{asked}").status_code < 500, path
            for action in page.actions:
                if action != "end":
                    assert clerk.post(path, do=action, **fields).status_code < 500, (path, action)


@pytest.mark.slow
def test_the_desk_is_the_same_on_either_store(room: Postroom, tmp_path: Path) -> None:
    with serving(room) as served:
        open_office(room, tmp_path)
        clerk = browser(served.url)
        assert clerk.sign_in("clerk").url.path == "/web/desk/Ann"
        fields = {"field:No": "1", "field:Claimant": "Ida \u2603 Jarvis", "field:Loss Date": "Nov. 6, 2026"}
        made = clerk.post("/desk/Ann/new/CLAIM", do="create", **fields)
        key = made.url.path.rpartition("/")[2]
        assert "Shipped" in clerk.post(f"/desk/Ann/forms/{key}", do="ship", to="Ben").text
        assert "Ida \u2603 Jarvis" in clerk.get(f"/desk/Ben?mail={key}").text
        assert "Got 1 form." in clerk.post("/desk/Ben", do="all").text
        assert "2026-11-06" in clerk.get("/desk/Ben/query/CLAIM?find=1&field:Loss+Date=%3E2026-11-05").text
        assert clerk.get(f"/trace/{key}").text.count('<span class="track"') == 3
        assert "1 session" in f"{room.access.end_sessions('clerk')} session"
        assert clerk.get("/desk/Ann").url.path == "/web/sign-in"
        clerk.client.close()


def test_a_way_back_stays_until_something_else_is_done(office: Served, clerk: Browser) -> None:
    ann = office.room.stations.admitted("Ann")
    key = ann.create("APPROVAL", {"No": 41})
    shipped = clerk.post("/desk/Ann", do="ship", key=key, to="Director")
    assert 'class="notice" role="status" tabindex="-1" data-focus' in shipped.text
    later = clerk.get("/you")
    assert way_back(later) == "Take it back"
    assert "data-focus" not in later.text.split('class="notice"')[1].split(">")[0], "it takes the focus once"
    live = clerk.get("/you", **{"postroom-live": "1"})
    assert way_back(live) == "Take it back", "an open page asks whether there is still a way back"
    assert "data-focus" not in live.text.split('class="notice"')[1].split(">")[0]
    other = browser(office.url)
    other.sign_in("clerk")
    assert way_back(other.get("/you")) is None, "it is of one session"
    other.client.close()
    refused = clerk.post("/desk/Ann", do="ship", key=key, to="Nowhere")
    assert refused.status_code == 404
    assert way_back(clerk.get("/you")) == "Take it back", "a refused action has done nothing"
    clerk.post("/desk/Ann", do="all")
    assert way_back(clerk.get("/you")) is None
    taken_back(clerk, shipped)


def test_a_forged_way_back_is_an_action_like_any_other(office: Served, clerk: Browser) -> None:
    ann = office.room.stations.admitted("Ann")
    key = ann.create("APPROVAL", {"No": 42})
    ann.ship(key, "Director")
    for origin in ({"origin": "http://evil.example"}, {}):
        told = clerk.client.post(f"{clerk.url}/web/desk/Ann", data={"do": "take-back", "key": key}, headers=origin)
        assert told.status_code == 403
    assert office.room.journal.locate(key) == "mailbox:Director"
    ann.take_back(key)
