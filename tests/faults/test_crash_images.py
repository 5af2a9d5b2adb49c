"""The power fails at any moment: the room is as it was after one of its commits, and no acknowledged one is missing."""

from __future__ import annotations

import contextlib
import io
import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest
from tests.faults import counter_workload, sphere_workload, station_workload, workload
from tests.faults.disk import Files, Images, Kept, Recorder, plain_files, stored, told
from tests.faults.upkeep_workload import write_here

import postroom
from postroom import faults
from postroom.engine.archiving import archive
from postroom.room import Postroom
from postroom.store.proof.verification import verified
from postroom.store.sqlite.store import SqliteStore

Workload = Callable[[Path, list[str]], object]


def queues(folder: Path, urls: list[str]) -> None:
    """Sends and receives of every kind; the log is copied into the file every few commits, and begun anew."""
    with opened(urls[0]) as room:
        room.queues.create("q")
        room.queues.create("drop", keep_processed=False)
        for number in range(12):
            room.send("q", f"{number}\n" + "x" * (number * 40))
            room.send("drop", f"{number}", idempotency_key=f"k{number}")
            if number % 3 == 2:
                room.send_many("q", [f"many {number} {each}" for each in range(8)])
                room.receive("q", segment=True)
                room.receive("q", segment=True)
                room.receive("drop")
            room.receive("q")


def leases(folder: Path, urls: list[str]) -> None:
    """Leases of this process, which may be lost with it, their ends, which may not, and leases of others."""
    with opened(urls[0]) as room:
        room.queues.create("q")
        room.queues.create("drop", keep_processed=False)
        for number in range(6):
            room.send_many("q", [f"{number} {each} " + "x" * (number * 40) for each in range(6)])
            room.send_many("drop", [f"{number} {each}" for each in range(2)])
            for end in ("done", "fail", "release", "extend"):
                message = room.receive("q", lease=600).message
                assert message is not None
                message.extend(900) if end == "extend" else getattr(message, end)(*["no"] * (end == "fail"))
            dropped = room.receive("drop", lease=600).message
            assert dropped is not None
            dropped.done()
            (kept,) = room.receive_many("q", count=1, lease=600, detached=True)
            room.receive("q", lease=600)
            room.receive("q")
            room.consumers.lease(kept.lease).done()


def archives(folder: Path, urls: list[str]) -> None:
    """The journal leaves for folders, with messages that are gone, while more is sent and received."""
    with opened(urls[0]) as room:
        room.queues.create("q")
        room.queues.create("drop", keep_processed=False)
        for number in range(4):
            room.send_many("q", [f"{number} {count} " + "x" * 200 for count in range(6)])
            room.send("drop", f"{number}", idempotency_key=f"k{number}")
            room.receive("q")
            room.receive("drop")
            archive(room.store, room.store.read(lambda tx: tx.now), folder / "old", write_here)


@contextlib.contextmanager
def opened(url: str) -> Iterator[Postroom]:
    with postroom.open(url) as room:
        assert isinstance(room.store, SqliteStore)
        room.store.session.connection.execute("PRAGMA wal_autocheckpoint = 40").fetchall()
        yield room


#: Name → what is done, and in how many rooms. One more line makes images of one more kind of work.
WORKLOADS: dict[str, tuple[Workload, int]] = {
    "queues": (queues, 1),
    "leases": (leases, 1),
    "steps": (lambda folder, urls: workload.work(urls[0], folder), 1),
    "spheres": (lambda folder, urls: sphere_workload.own(urls[0], folder), 1),
    "hand-overs": (station_workload.work, 3),
    "counters": (counter_workload.work, 3),
    "archive": (archives, 1),
}


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that needs no disk, and rooms that reserve none: images are written by the thousand."""
    monkeypatch.setattr("postroom.store.files.reserve.RESERVE_BYTES", 4096)
    folder = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    yield folder
    shutil.rmtree(folder)


def recorded(folder: Path, name: str) -> Images:
    work, count = WORKLOADS[name]
    rooms, around = folder / "rooms", folder / "around"
    rooms.mkdir()
    around.mkdir()
    urls = [str(rooms / f"{number}.db") for number in range(count)]
    for url in urls:
        postroom.open(url).close()
    before = stored(rooms)
    recorder = Recorder(rooms)
    with told(recorder), contextlib.redirect_stdout(io.StringIO()):
        work(around, urls)
    return Images(before, recorder.events)


class Looked:
    """Opens images with the real store, and says which of the known states they are in."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "image"
        self.known: dict[str, dict[bytes, list[int]]] = {}  # room → what it holds → after how many commits it did

    def state(self, room: str, files: Files) -> bytes:
        """All that an image of a room holds; a state that was not seen before must be sound."""
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir()
        for name, data in files.items():
            (self._folder / Path(name).name).write_bytes(data)
        store = SqliteStore(self._folder / Path(room).name, actor="test", create=False)
        try:
            execute = store.session.connection.execute
            tables = [row[0] for row in execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1")]
            held = blake2b()
            for table in tables:
                held.update(repr(sorted(execute(f"SELECT * FROM {table}").fetchall(), key=repr)).encode())
            found = held.digest()
            if found not in self.known.setdefault(room, {}):
                assert execute("PRAGMA integrity_check").get == "ok"
                assert not store.read(verified).differences
            return found
        finally:
            store.close()

    def learn(self, images: Images) -> None:
        for room in images.rooms():
            for number, files in enumerate(images.states(room)):
                self.known.setdefault(room, {}).setdefault(self.state(room, files), []).append(number)

    def violations(self, images: Images, chance: random.Random, share: float) -> tuple[int, list[str]]:
        """How many images were made, and what was wrong with them. An image seen before is not looked at again."""
        count, wrong, seen = 0, [], {}
        for image in images.drawn(chance, share):
            for room in images.rooms():
                count += 1
                files = {name: data for name, data in image.files.items() if name.startswith(room)}
                print_ = hash(tuple(sorted(files.items())))
                if print_ not in seen:
                    seen[print_] = self.state(room, files)
                numbers = self.known[room].get(seen[print_])
                least, most = image.least[room], image.most[room]
                if numbers is None:
                    wrong.append(f"{room}: after {least} acknowledged commits, a state that never was")
                elif not any(least <= number <= most for number in numbers):
                    wrong.append(f"{room}: {least} commits were acknowledged, {max(numbers)} are there")
        return count, wrong


@pytest.mark.parametrize(
    ("name", "share"),
    [
        *(pytest.param(name, 0.1, id=f"{name}-slice") for name in ("queues", "leases")),
        *(
            pytest.param(name, share, marks=pytest.mark.slow, id=f"{name}-whole")
            for name, share in {
                "queues": 30.0,
                "leases": 30.0,
                "steps": 17.0,
                "spheres": 25.0,
                "hand-overs": 5.0,
                "counters": 5.0,
                "archive": 30.0,
            }.items()
        ),
    ],
)
def test_after_a_power_failure_every_acknowledged_commit_is_there(memory: Path, name: str, share: float) -> None:
    images, looked = recorded(memory, name), Looked(memory)
    looked.learn(images)
    count, wrong = looked.violations(images, random.Random(name), share)
    print(f"{name}: {count} images, {sum(map(len, looked.known.values()))} states")
    assert not wrong, f"{len(wrong)} of {count}: {wrong[:3]}"
    assert count > 50


def test_a_lease_of_another_is_on_disk_before_it_is_told(memory: Path) -> None:
    """One of this process ends with it, and waits for no disk."""
    recorder = Recorder(memory)
    with told(recorder), postroom.open(memory / "room.db") as room:
        room.queues.create("q")
        room.send_many("q", [f"{number}" for number in range(20)])
        room.receive("q", lease=600)  # it finds out where the queue is

        def synced(work: Callable[[], object]) -> bool:
            recorder.events.clear()
            work()
            assert any(event.kind == "write" for event in recorder.events)
            return any(event.kind == "sync" for event in recorder.events)

        def lease(**options: Any) -> Any:
            return room.receive_many("q", count=1, lease=600, **options)[0]

        mine, others = [], []
        assert not synced(lambda: mine.append(lease()))
        assert synced(lambda: others.append(lease(detached=True)))
        assert synced(mine[0].done)
        assert synced(others[0].done)
        assert not synced(lambda: mine.append(lease()))
        assert synced(lambda: room.send("q", "more")), "the next commit is on disk, and all before it"


def test_the_images_would_show_a_store_that_does_not_sync_its_commits(
    memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weaker = [setting.replace("synchronous = FULL", "synchronous = NORMAL") for setting in sqlite_settings()]
    monkeypatch.setattr("postroom.store.sqlite.connection.SETTINGS", weaker)
    images, looked = recorded(memory, "queues"), Looked(memory)
    looked.learn(images)
    count, wrong = looked.violations(images, random.Random(17), 0.1)
    assert len(wrong) > count / 10
    assert any("commits were acknowledged" in each for each in wrong)


def sqlite_settings() -> tuple[str, ...]:
    from postroom.store.sqlite import connection

    return connection.SETTINGS


# --- files beside the room: they are on disk before the room relies on them ---


@pytest.fixture
def kept(memory: Path, monkeypatch: pytest.MonkeyPatch) -> Kept:
    (memory / "beside").mkdir()
    disk = Kept(memory / "beside")
    monkeypatch.setattr(os, "fsync", disk.fsync)
    return disk


@pytest.mark.parametrize("killed", [False, True], ids=["at-once", "after-a-kill"])
def test_an_archive_is_on_disk_before_its_lines_leave_the_journal(
    memory: Path, kept: Kept, monkeypatch: pytest.MonkeyPatch, killed: bool
) -> None:
    seen: list[tuple[Files, Files]] = []

    def reach(point: str) -> None:
        if point == "archive.renamed":
            seen.append((kept.files(), plain_files(kept.root)))

    folder = kept.root / "of" / "this" / "year"
    with postroom.open(memory / "room.db") as room:
        room.queues.create("q")
        room.send_many("q", ["a", "b"])
        if killed:
            with monkeypatch.context() as patch:
                patch.setattr(Path, "rename", renamed_and_killed)
                with pytest.raises(Killed):
                    archive(room.store, room.store.read(lambda tx: tx.now), folder, write_here)
            assert plain_files(kept.root)
        monkeypatch.setattr(faults, "reach", reach)
        archive(room.store, room.store.read(lambda tx: tx.now), folder, write_here)
    assert len(seen) == 1
    on_disk, there = seen[0]
    assert len(there) == 2
    assert on_disk == there


class Killed(BaseException):
    """As if by a signal: nothing is tidied up."""


def renamed_and_killed(file: Path, name: Path) -> Path:
    os.rename(file, name)
    if name.name.startswith("journal-"):
        raise Killed
    return name


def test_a_backup_is_on_disk_when_it_is_acknowledged(memory: Path, kept: Kept) -> None:
    with postroom.open(memory / "room.db") as room:
        room.queues.create("q")
        room.send("q", "a")
        room.backup(kept.root / "copy.db")
        room.backup(kept.root / "copy.db", replace=True)
        assert list(plain_files(kept.root)) == ["/copy.db"]
        assert plain_files(kept.root).items() <= kept.files().items()
