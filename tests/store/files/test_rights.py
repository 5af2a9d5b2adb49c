"""Who may touch the files of a room, and what may lie in the folder where waiters are woken."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

import postroom
from postroom.errors import FolderUnsafe, StoreUnavailable
from postroom.room import Postroom
from postroom.store.files import wakeup


@pytest.fixture(autouse=True)
def _usual_mask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture
def room(sqlite_url: str) -> Iterator[Postroom]:
    with postroom.open(sqlite_url) as opened:
        opened.queues.create("q")
        yield opened


def mode(path: str) -> str:
    return f"{stat.S_IMODE(os.stat(path).st_mode):o}"


def access(room: Postroom) -> list[str]:
    return [
        finding.what for finding in room.operations.diagnose() if finding.check == "access" and finding.level.is_problem
    ]


def test_the_files_of_a_room_are_for_its_owner_alone(room: Postroom, sqlite_url: str) -> None:
    room.send("q", "secret")
    with room.store.waiter():
        rights = {suffix: mode(sqlite_url + suffix) for suffix in ("", "-wal", "-shm", "-reserve", "-wake")}
        (pipe,) = Path(sqlite_url + "-wake").iterdir()
        assert mode(str(pipe)) == "600"
    assert rights == {"": "600", "-wal": "600", "-shm": "600", "-reserve": "600", "-wake": "700"}
    assert not access(room)


def test_a_room_of_before_keeps_working_and_the_doctor_names_its_rights(sqlite_url: str) -> None:
    with postroom.open(sqlite_url) as room:
        room.queues.create("q")
    os.unlink(sqlite_url + "-reserve")
    os.chmod(sqlite_url, 0o644)
    with postroom.open(sqlite_url) as room:
        assert room.send("q", "x").key
        said = access(room)
        assert "room.db has the rights 0644: others than its owner may open it" in said


def test_no_room_is_made_where_everybody_may_replace_it(tmp_path: Path) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o777)
    for place in (folder, folder / "below"):
        place.mkdir(exist_ok=True)
        with pytest.raises(FolderUnsafe, match="everybody may replace files") as caught:
            postroom.open(place / "room.db")
        assert caught.value.facts["folder"] == str(folder)
        assert not (place / "room.db").exists()
    folder.chmod(0o1777)  # as /tmp is
    with postroom.open(folder / "room.db") as room:
        room.queues.create("q")
    folder.chmod(0o777)
    with postroom.open(folder / "room.db") as room:  # one that is there keeps working
        assert room.send("q", "x").key
        assert access(room) == [f"{folder}: everybody may replace files there"]


@pytest.mark.skipif(os.geteuid() != 0, reason="to give a folder away takes root")
def test_no_room_is_made_in_the_folder_of_another_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    os.chown(folder, 4711, 4711)
    monkeypatch.setattr(os, "geteuid", lambda: 4712)
    with pytest.raises(FolderUnsafe, match="another user \\(4711\\), who may replace files there"):
        postroom.open(folder / "room.db")
    assert not list(folder.iterdir())
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    postroom.open(folder / "room.db").close()


def test_a_link_instead_of_the_folder_of_waiters_is_not_followed(
    room: Postroom, sqlite_url: str, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    os.mkfifo(elsewhere / "pipe")
    os.symlink(elsewhere, sqlite_url + "-wake")
    assert room.send("q", "x").key
    with pytest.raises(StoreUnavailable, match="cannot wait"), room.store.waiter():
        pass
    assert os.listdir(elsewhere) == ["pipe"]  # a pipe that nobody reads would have been cleared away


def test_nothing_but_pipes_of_ours_is_written_to(room: Postroom, sqlite_url: str, tmp_path: Path) -> None:
    folder = Path(sqlite_url + "-wake")
    folder.mkdir(mode=0o700)
    victim = tmp_path / "victim"
    victim.write_bytes(b"")
    (folder / "file").write_bytes(b"")
    os.symlink(victim, folder / "link")
    readers = {}
    for name in ("real", "behind"):
        os.mkfifo(tmp_path / name if name == "behind" else folder / name)
        readers[name] = os.open(tmp_path / name if name == "behind" else folder / name, os.O_RDWR | os.O_NONBLOCK)
    os.symlink(tmp_path / "behind", folder / "link to a pipe")
    assert room.send("q", "x").key
    assert victim.read_bytes() == b""
    assert (folder / "file").read_bytes() == b""
    assert os.read(readers["real"], 10) == b"w"
    with pytest.raises(BlockingIOError):
        os.read(readers["behind"], 10)
    for reader in readers.values():
        os.close(reader)


@pytest.mark.skipif(os.geteuid() != 0, reason="to give a pipe away takes root")
def test_pipes_and_folders_of_other_users_are_left_alone(room: Postroom, sqlite_url: str) -> None:
    folder = Path(sqlite_url + "-wake")
    folder.mkdir(mode=0o700)
    os.mkfifo(folder / "theirs")
    reader = os.open(folder / "theirs", os.O_RDWR | os.O_NONBLOCK)
    os.chown(folder / "theirs", 4711, 4711)
    assert room.send("q", "x").key
    with pytest.raises(BlockingIOError):
        os.read(reader, 10)
    os.chown(folder / "theirs", 0, 0)
    os.chown(folder, 4711, 4711)
    wakeup.wake(folder)
    with pytest.raises(BlockingIOError):
        os.read(reader, 10)
    with pytest.raises(StoreUnavailable, match="cannot wait"), room.store.waiter():
        pass
    os.close(reader)
    os.chown(folder, 0, 0)


def test_a_link_instead_of_the_reserve_is_not_followed(sqlite_url: str, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_bytes(b"x" * 100_000_000)
    os.symlink(precious, sqlite_url + "-reserve")
    with pytest.raises(StoreUnavailable):
        postroom.open(sqlite_url)
    assert precious.stat().st_size == 100_000_000
