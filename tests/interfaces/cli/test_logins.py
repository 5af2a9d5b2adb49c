"""Who acts: logins and the file that keeps them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import postroom
from postroom.interfaces.cli import logins
from postroom.interfaces.cli.logins import Login

from ..conftest import Run
from .conftest import created

if TYPE_CHECKING:
    pass


def test_a_login_stands_for_its_station_until_it_ends(office: Run, state: Path, tmp_path: Path) -> None:
    assert (state.stat().st_mode & 0o777, state.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    kept = json.loads(state.read_text())
    assert kept.keys() == {str(tmp_path / "postroom.db")}
    assert kept[str(tmp_path / "postroom.db")].keys() == {"station", "token"}
    assert created(office, "FEE", "Payer=IBM")
    assert office("list", "--room", "../" + tmp_path.name + "/postroom.db").code == 0
    assert office("list", "--room", "sqlite:///postroom.db").code == 0
    assert office("list", "--as", "Dennis").code == 0
    assert office("list", "--as", "Simon").err.startswith("postroom: argument-invalid: password: set POSTROOM_PASSWORD")
    assert office("list", "--as", "Simon", stdin="wrong\n").err.startswith("postroom: principal-refused: Simon:")
    unknown = office("get", "--as", "Bob", stdin="b\n")
    assert unknown.err == (
        "postroom: principal-refused: Bob: there is no such principal, or the password is not its own; "
        "postroom station list tells the stations\n"
    )
    assert office("list", "--as", "Simon", stdin="s\n").err == "no message\n"
    with postroom.open(tmp_path / "postroom.db") as room:
        room.stations.logout(*Login(**kept[str(tmp_path / "postroom.db")]))
    ended = office("list")
    assert (ended.code, ended.err) == (
        1,
        "postroom: principal-refused: Dennis: this login has ended; log in again with: postroom login\n",
    )
    asked = office("list", "--as", "Dennis", stdin="d\n")
    assert (asked.code, asked.err) == (0, "the login of Dennis has ended\n")


def test_a_broken_file_of_logins_is_as_none(office: Run, state: Path, tmp_path: Path) -> None:
    for said in ("", "{", "[]", '{"ROOM": []}', '{"ROOM": {"station": 1}}', "\xff", "[" * 100_000):
        state.write_bytes(said.replace("ROOM", str(tmp_path / "postroom.db")).encode("latin-1"))
        assert office("list").err.startswith("postroom: argument-invalid: --as"), said[:40]
    assert office("login", "Dennis", stdin="d\n").code == 0
    assert office("list").code == 0


def test_logins_that_cannot_be_kept_are_ended(
    office: Run, state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    told = office("login", "Dennis", stdin="d\n")
    assert told.err.startswith("postroom: argument-invalid: login: cannot write ")
    with postroom.open(tmp_path / "postroom.db") as room:
        assert len(room.store.read(lambda tx: tx.principals.secrets("login"))) == 1  # that of before
    assert office("list").err.startswith("postroom: argument-invalid: --as")


def test_logins_are_below_the_home_unless_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    logins.keep("room.db", Login("Dennis", "t"))
    assert (tmp_path / ".local" / "state" / "postroom" / "logins.json").exists()
    assert list((tmp_path / ".local" / "state" / "postroom").iterdir()) == [
        tmp_path / ".local" / "state" / "postroom" / "logins.json"
    ]
    monkeypatch.setattr(Path, "home", _no_home)
    assert logins.login_at("room.db") is None
    with pytest.raises(postroom.PostroomError, match="no home directory"):
        logins.keep("room.db", Login("Dennis", "t"))


def _no_home() -> Path:
    raise RuntimeError


def test_the_file_of_logins_has_no_password_of_a_database(state: Path) -> None:
    logins.keep("postgresql://me:geheim@host/db?password=geheim&options=x", Login("Dennis", "t"))
    assert "geheim" not in state.read_text()
    assert logins.login_at("postgresql://me@host/db?options=x") == Login("Dennis", "t")
    assert logins.login_at("postgresql://me@host/db?options=y") is None
