"""Rooms with stations, forms and logins, and one with a tree of queues, as commands make them."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from postroom.stations.forms.reader import parse

from ..conftest import Run

FORMS = """\
type MEETING ANNOUNCEMENT
| To: ______________  KEY: ___________ |
| From: ____________________________   |
| Subject: ___________________________ |
| Response: __________________________ |
field To       string required
field From     string automatic signature
field KEY      key    automatic
field Subject  string required
field Response string free
index To

type FEE
| Payer: _________ Fee: ______ |
| Paid: _____ Tags: __________ |
field Payer string required
field Fee   decimal free
field Paid  boolean once
field Tags  list of string free
"""


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the logins of a test are kept."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "postroom" / "logins.json"


@pytest.fixture
def office(run: Run, tmp_path: Path) -> Run:
    """Dennis at this room, logged in; Simon on the node north."""
    (tmp_path / "office.form").write_text(FORMS)
    assert run("load", "office.form").code == 0
    assert run("node", "add", "north", "north.db").out == "north is a node\n"
    assert run("station", "add", "Dennis", stdin="d\n").out == "Dennis is a station on node control\n"
    assert run("station", "add", "Simon", "--node", "north", stdin="s\n").code == 0
    assert run("login", "Dennis", stdin="d\n").out == "Dennis is logged in for 12 hours\n"
    return run


def created(run: Run, type: str, *fields: str) -> str:
    key: str = run("create", type, *fields, "--json").json["key"]
    return key


def sketch(**said: str) -> str:
    """The form of a fee, filled in."""
    form = parse(FORMS, "office.form")[1]
    return form.shown(dict(said.items()))


def damage(folder: Path, what: str, instead: str) -> None:
    """Change what messages say, behind the back of the store."""
    store = sqlite3.connect(folder / "postroom.db")
    store.execute("UPDATE messages SET body = replace(body, ?, ?)", (what, instead))
    store.commit()
    store.close()


TREE = """
01 INPUT-QUEUE (MASTER-QUE) PASSWORD IS "MASTER"
   02 SUB-QUEUE-1 (SUBQ-1)
      03 SUB-QUEUE-2 (QUE1A)
   02 SUB-QUEUE-1 (SUBQ-3)
      03 SUB-QUEUE-2 (QUE5)
      03 SUB-QUEUE-2 (QUE6)
01 OUTPUT-QUEUE (OQ3)
99
"""


@pytest.fixture
def tree(run: Run, tmp_path: Path) -> Run:
    (tmp_path / "tree.qdl").write_text(TREE)
    assert run("load", "tree.qdl").code == 0
    return run
