"""An office of three stations behind a real server on loopback: one for all tests of the folder, and one browser.

Operators' tests have a room of their own each, on SQLite; the same on PostgreSQL is a slow battery.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser as Chromium
from playwright.sync_api import BrowserContext, Page, expect
from tests.interfaces.http.conftest import Served, serving
from tests.interfaces.web.chromium import chromium
from tests.passwords import cheap

import postroom
from postroom.room import Postroom
from postroom.stations.station import Station

CLAIM = """type CLAIM
| No: ________   KEY: ___________   DATE: __________ |
| Claimant: ______________________  Region: ________ |
| Loss: ____________________________________________ |
| Amount: ____________    Loss Date: ____________    |
| Remarks: _________________________________________ |
| State: ______________   From: ____________________ |
field No        int     required
field KEY       key     automatic
field DATE      date    automatic
field Claimant  string  required
field Region    string  once
field Loss      string  free
field Amount    decimal free
field Loss Date date    free
field Remarks   string  free
field State     string  free
field From      string  automatic signature
"""
APPROVAL = """type APPROVAL
| No: ________   KEY: ___________ |
| Cover: ____________             |
field No    int     required
field KEY   key     automatic
field Cover decimal free
"""
SETTLE = """procedure settle at Ann
  precondition claim : CLAIM
  precondition approval : APPROVAL
    No: ?claim.No
    Cover: >= ?claim.Amount
  action accept on claim
    State: approved
  destination done on approval copy 0 dossier done
"""
PASSWORD = "correct horse"
STATIONS = ("Ann", "Ben", "Director")


@dataclass
class Browser:
    """A client that keeps cookies, and says where it comes from as browsers do."""

    url: str
    client: httpx.Client

    def get(self, path: str, **more: str) -> httpx.Response:
        return self.client.get(self.url + "/web" + path, headers=more)

    def post(self, path: str, /, **fields: object) -> httpx.Response:
        data = {name: str(value) for name, value in fields.items()}
        return self.client.post(self.url + "/web" + path, data=data, headers={"origin": self.url})

    def sign_in(self, name: str, password: str = PASSWORD) -> httpx.Response:
        return self.post("/sign-in", name=name, password=password)


_UNDO = re.compile(r'<div class="notice".*?<form method="post" action="([^"]+)">(.*?)<button class="plain">([^<]+)<')
_FIELD = re.compile(r'name="([^"]*)" value="([^"]*)"')


def way_back(page: httpx.Response) -> str | None:
    """What the button beside the notice is called, if there is one."""
    found = _UNDO.search(page.text)
    return None if found is None else found[3]


def taken_back(there: Browser, page: httpx.Response) -> httpx.Response:
    """The page after a click of the button beside the notice."""
    found = _UNDO.search(page.text)
    assert found is not None, page.text
    fields: dict[str, list[str]] = {}
    for name, value in _FIELD.findall(found[2]):
        fields.setdefault(unescape(name), []).append(unescape(value))
    return there.client.post(there.url + unescape(found[1]), data=fields, headers={"origin": there.url})


def finished(there: Browser, answer: httpx.Response) -> str:
    """The page that shows what came of something that takes long."""
    while 'id="asking"' in answer.text:
        answer = there.client.get(answer.url)
    return answer.text


def browser(url: str) -> Browser:
    return Browser(url, httpx.Client(trust_env=False, verify=False, timeout=30, follow_redirects=True))


def open_office(room: Postroom, folder: Path) -> None:
    """Stations, forms, a procedure, and users: one who works everywhere, one at one station, one with no right."""
    for name, text in (("claim.form", CLAIM), ("approval.form", APPROVAL), ("settle.form", SETTLE)):
        (folder / name).write_text(text)
    for name in STATIONS:
        room.stations.add(name, PASSWORD)
    room.load(*(folder / name for name in ("claim.form", "approval.form", "settle.form")))
    room.stations.enable_procedure("settle")
    room.queues.create("orders")
    room.send("orders", "order 1")
    for name in ("clerk", "nobody"):
        room.flows.add_principal(name, PASSWORD)
    room.access.grant("Ann", "work", "Ann")
    for name in STATIONS:
        room.access.grant("clerk", "work", name)
    room.access.grant("clerk", "look", "*")


def open_back_office(room: Postroom, folder: Path) -> None:
    """What operators look after: rules that may fail. The clerk is one of them."""
    (folder / "shop.demaq").write_text(SHOP)
    room.load(folder / "shop.demaq")
    room.access.grant("clerk", "operate")


@contextmanager
def served_office(folder: Path) -> Iterator[Served]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("postroom.model.password._hasher", cheap)
        with postroom.open(f"{folder}/office.db") as room, serving(room) as served:
            open_office(room, folder)
            open_back_office(room, folder)
            yield served


@pytest.fixture(scope="package")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One for all tests of the folder but those with a browser."""
    with served_office(tmp_path_factory.mktemp("office")) as served:
        yield served


def cookies_of(served: Served, name: str) -> dict[str, str]:
    found = browser(served.url)
    assert found.sign_in(name).status_code == 200
    cookies = dict(found.client.cookies)
    found.client.close()
    return cookies


@pytest.fixture(scope="package")
def session(office: Served) -> dict[str, str]:
    """The cookie of the clerk, who signs in once: a password takes its time."""
    return cookies_of(office, "clerk")


@pytest.fixture
def clerk(office: Served, session: dict[str, str]) -> Iterator[Browser]:
    """Signed in, with every right that the office needs."""
    found = browser(office.url)
    found.client.cookies.update(session)
    yield found
    found.client.close()


@pytest.fixture
def stranger(office: Served) -> Iterator[Browser]:
    found = browser(office.url)
    yield found
    found.client.close()


# --- operators ---

SHOP = """create module shop errorqueue errors
create queue errors kind basic mode persistent
create queue stock kind basic mode persistent
create queue answers kind basic mode persistent
create rule look for stock
  if (/ask) then do enqueue <answer>{xs:integer(/ask/count) + 1}</answer> into answers
"""


def ask(count: str) -> str:
    return f"<ask><count>{count}</count></ask>"


def open_shop(room: Postroom, folder: Path) -> None:
    """Rules that fail for what is no number; an operator, a clerk who may only look, and a user with no right."""
    (folder / "shop.demaq").write_text(SHOP)
    room.load(folder / "shop.demaq")
    for name in ("operator", "looker", "nobody"):
        room.flows.add_principal(name, PASSWORD)
    room.access.grant("operator", "operate")
    room.access.grant("looker", "look", "*")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def shop(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """On both stores."""
    monkeypatch.setattr("postroom.model.password._hasher", cheap)
    url: str = request.getfixturevalue(f"{request.param}_url")
    with postroom.open(url) as room, serving(room) as served:
        open_shop(room, tmp_path)
        yield served


@pytest.fixture
def operator(shop: Served) -> Iterator[Browser]:
    found = browser(shop.url)
    assert found.sign_in("operator").status_code == 200
    yield found
    found.client.close()


def fail(room: Postroom, *counts: str) -> list[str]:
    """Error messages for these; returns their keys."""
    for count in counts:
        room.send("stock", ask(count), format="xml")
    room.run(until_idle=True)
    return [message.key for message in room.queues.peek("errors")]


# --- what takes long ---


@contextmanager
def held(patch: pytest.MonkeyPatch) -> Iterator[tuple[threading.Event, threading.Event]]:
    """Queries say that one place of two has answered, and then wait; set when they do, and to let them go on."""
    half, go = threading.Event(), threading.Event()
    real = Station.query

    def query(self: Station, *given: Any, progress: Any = None, **more: Any) -> Any:
        progress(1, 2)
        half.set()
        while not go.wait(0.02):
            progress(1, 2)  # raises if it is stopped
        return real(self, *given, progress=progress, **more)

    patch.setattr(Station, "query", query)
    try:
        yield half, go
    finally:
        go.set()


@contextmanager
def midway(patch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """A query everywhere waits when it has read the stations, and has not read the mailboxes; set to let it go on."""
    go = threading.Event()
    real = Station.query

    def query(self: Station, *given: Any, progress: Any = None, **more: Any) -> Any:
        def wait(done: int, total: int) -> None:
            progress(done, total)
            while done < total and not go.wait(0.02):
                progress(done, total)  # raises if it is stopped

        return real(self, *given, progress=wait, **more)

    patch.setattr(Station, "query", query)
    try:
        yield go
    finally:
        go.set()
        patch.setattr(Station, "query", real)


# --- a real browser ---


@pytest.fixture(scope="package")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One for all tests with a browser: what stands there is what the stories do, so pictures are alike."""
    with served_office(tmp_path_factory.mktemp("stage")) as served:
        yield served


@pytest.fixture(scope="package")
def engine(stage: Served) -> Iterator[Chromium]:
    expect.set_options(timeout=60_000)  # a bound, not a wait
    with chromium() as found:
        yield found


@pytest.fixture(scope="package")
def signed_in(stage: Served, engine: Chromium) -> Iterator[BrowserContext]:
    """One window of the clerk for all tests; whatever a page complains about fails the test that asks."""
    context = engine.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(60_000)
    cookies = cookies_of(stage, "clerk")
    context.add_cookies([{"name": name, "value": value, "url": stage.url} for name, value in cookies.items()])
    yield context
    context.close()


@contextmanager
def without_complaints(page: Page) -> Iterator[Page]:
    """A window that is closed at the end; nothing has failed in it."""
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    yield page
    page.close()
    assert [each for each in complaints if "status of 4" not in each] == []  # a refusal is meant


@pytest.fixture
def page(signed_in: BrowserContext) -> Iterator[Page]:
    with without_complaints(signed_in.new_page()) as page:
        yield page
