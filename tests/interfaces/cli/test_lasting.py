"""Commands that go on for long survive that their database is restarted; the others, and a failed disk, end."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from time import monotonic, sleep

import psycopg
import pytest
from tests.interfaces.cobol.test_sessions import called, program
from tests.interfaces.http.test_server import prepared, process
from tests.interfaces.stomp.conftest import Wire

import postroom
from postroom.errors import PostroomError, StoreStopped, StoreUnavailable
from postroom.interfaces.cli import lasting
from postroom.interfaces.cli.lasting import Lasting
from postroom.interfaces.cobol.session import NO_WAIT, SEGMENT
from postroom.room import Postroom

RULES = """create queue incoming kind basic mode persistent
create queue large kind basic mode persistent
create rule sort for incoming
if (/order/id) then do enqueue <approve>{/order/id}</approve> into large
"""
WORKERS = """import postroom
workers = postroom.Workers()

@workers.worker("orders")
def work(message):
    with open("worked", "a") as file:
        file.write(message.body + "\\n")
"""


def until(true: Callable[[], object], seconds: float = 60) -> None:
    end = monotonic() + seconds
    while not true():
        assert monotonic() < end, "it did not happen in time"
        sleep(0.1)


class Database:
    """A room's database: away, as while its server is restarted, and back."""

    def __init__(self, server: str, url: str) -> None:
        self._server = server
        self._name = url.partition("?")[0].rpartition("/")[2]

    def go_away(self) -> None:
        self._do(f"ALTER DATABASE {self._name} ALLOW_CONNECTIONS false")
        self.cut()

    def cut(self) -> None:
        self._do(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{self._name}'")

    def come_back(self) -> None:
        self._do(f"ALTER DATABASE {self._name} ALLOW_CONNECTIONS true")

    def _do(self, statement: str) -> None:
        with psycopg.connect(self._server, autocommit=True) as connection:
            connection.execute(statement.encode())


@pytest.fixture
def database(postgres_server: str, postgres_url: str) -> Iterator[Database]:
    it = Database(postgres_server, postgres_url)
    yield it
    it.come_back()


@contextmanager
def command(folder: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    said = (folder / "said").open("w+")
    with (
        said,
        subprocess.Popen([sys.executable, "-m", "postroom", *words], cwd=folder, stderr=said, text=True) as child,
    ):
        try:
            yield child
        finally:
            if child.poll() is None:
                child.kill()


def send(url: str, token: str, queue: str, body: str) -> bool:
    try:
        with postroom.open(url, token=token) as remote:
            remote.send(queue, body)
    except PostroomError:
        return False
    return True


@pytest.mark.parametrize("how", ["cut", "away"])
def test_a_server_goes_on_at_the_same_places(postgres_url: str, database: Database, tmp_path: Path, how: str) -> None:
    token, path = prepared(postgres_url), tmp_path / "s"
    with process(postgres_url, "--port", "0", "--stomp", "0", "--session", str(path)) as (child, url):
        assert child.stdout is not None
        stomp = int(child.stdout.readline().rsplit(":", 1)[1])
        assert send(url, token, "orders", "before")
        for _ in range(2):
            if how == "cut":
                database.cut()
            else:
                database.go_away()
                assert not send(url, token, "orders", "lost")
                sleep(1)
                database.come_back()
            until(lambda: send(url, token, "orders", "after"))
        database.cut()
        sleep(5)  # nobody asks for anything: it finds out by itself
        assert send(url, token, "orders", "much later")
        with Wire(stomp) as wire:
            wire.connect(token)
            wire.done("SEND", "by STOMP", destination="/queue/orders")
        program(path).close()
        child.send_signal(signal.SIGTERM)
        assert child.wait(60) == 0
    with postroom.open(postgres_url) as room:
        assert [message.body for message in room.peek("orders")][-1] == "by STOMP"
        assert "lost" not in [message.body for message in room.peek("orders")]
        assert room.journal.verify().differences == ()


def test_what_programs_had_received_is_back(postgres_url: str, database: Database, tmp_path: Path) -> None:
    token, path, cd = prepared(postgres_url), tmp_path / "s", b"orders".ljust(87)
    with postroom.open(postgres_url) as room:
        room.queues.create("lines")
        room.send("orders", "whole")
        room.send("lines", "one\ntwo\n")
    with process(postgres_url, "--port", "0", "--session", str(path)) as (child, url):
        with closing(program(path)) as first, closing(program(path)) as second:
            assert called(first, "R", cd, b=NO_WAIT, c=80)[1] == b"whole"
            assert called(second, "R", b"lines".ljust(87), b=NO_WAIT | SEGMENT, c=80)[1] == b"one"
            database.cut()
            until(lambda: send(url, token, "orders", "after"))
        with closing(program(path)) as next_one:
            assert called(next_one, "R", cd, b=NO_WAIT, c=80)[1] == b"whole"
            assert called(next_one, "R", b"lines".ljust(87), b=NO_WAIT | SEGMENT, c=80)[1] == b"one"
            called(next_one, "Q")
        child.send_signal(signal.SIGTERM)
        assert child.wait(60) == 0
    with postroom.open(postgres_url) as room:
        assert [message.body for message in room.peek("orders")] == ["after"]
        assert room.journal.verify().differences == ()


def test_an_engine_goes_on(postgres_url: str, database: Database, tmp_path: Path) -> None:
    (tmp_path / "p.demaq").write_text(RULES)
    with postroom.open(postgres_url) as room:
        room.load(tmp_path / "p.demaq")
        room.send("incoming", "<order><id>1</id></order>", format="xml")
    with command(tmp_path, "run", "--room", postgres_url) as engine:
        with postroom.open(postgres_url) as room:
            until(lambda: len(list(room.peek("large"))) == 1)
        database.go_away()
        until(lambda: "waiting for the database" in (tmp_path / "said").read_text())
        database.come_back()
        with postroom.open(postgres_url) as room:
            room.send("incoming", "<order><id>2</id></order>", format="xml")
            until(lambda: len(list(room.peek("large"))) == 2)
            engine.send_signal(signal.SIGTERM)
            assert engine.wait(60) == 0, (tmp_path / "said").read_text()
            assert room.journal.verify().differences == ()
    assert "the database is back: going on" in (tmp_path / "said").read_text()


def test_workers_go_on_and_count_on(postgres_url: str, database: Database, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(WORKERS)
    with postroom.open(postgres_url) as room:
        room.queues.create("orders")
        room.send("orders", "1")
    worked, health = tmp_path / "worked", tmp_path / "health"

    def done(count: int) -> bool:
        return health.exists() and f'"done_count": {count}' in health.read_text()

    with command(tmp_path, "work", "shop:workers", "--room", postgres_url, "--health", "health") as child:
        until(lambda: done(1))
        database.cut()
        with postroom.open(postgres_url) as room:
            room.send("orders", "2")
        until(lambda: done(2))
        child.send_signal(signal.SIGTERM)
        assert child.wait(60) == 0
    assert worked.read_text() == "1\n2\n"


def test_whoever_stops_it_while_the_database_is_away_need_not_wait(
    postgres_url: str, database: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    stopped: list[Postroom] = []
    it = Lasting(lambda: postroom.open(postgres_url), stopped.append)

    def work(room: Postroom) -> None:
        database.go_away()
        threading.Timer(1, it.stop).start()
        room.count()

    assert it.run(work) is None
    assert len(stopped) == 1
    assert "store-unavailable" in capsys.readouterr().err


def test_work_that_is_to_end_fails_with_the_database(postgres_url: str, database: Database) -> None:
    def work(room: Postroom) -> None:
        database.cut()
        room.count()

    with pytest.raises(StoreUnavailable):
        Lasting(lambda: postroom.open(postgres_url), once=True).run(work)


def test_what_fails_for_another_reason_is_told(url: str) -> None:
    with pytest.raises(PostroomError, match="nowhere"):
        Lasting(lambda: postroom.open(url)).run(lambda room: room.receive("nowhere"))


def test_a_room_whose_disk_failed_is_not_opened_again(sqlite_url: str) -> None:
    opened: list[str] = []

    def open() -> Postroom:
        opened.append(sqlite_url)
        return postroom.open(sqlite_url)

    def work(room: Postroom) -> None:
        room.store._stop("the disk failed")
        room.count()

    with pytest.raises(StoreStopped, match="the disk failed"):
        Lasting(open).run(work)
    assert len(opened) == 1


def test_it_waits_longer_and_longer(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    tried = iter([True, False, False, False, True])

    def open() -> Postroom:
        if not next(tried):
            raise StoreUnavailable(why="test")
        return postroom.open(postgres_url)

    it = Lasting(open)
    monkeypatch.setattr(lasting, "REOPEN_SECONDS_MAX", 1.5)
    monkeypatch.setattr(it._ended, "wait", lambda seconds: waited.append(seconds))

    def work(room: Postroom) -> int:
        if not waited:
            room.store._stop("test")
        return len(room.count().queues)

    assert it.run(work) == 0
    assert waited == [0.5, 1.0, 1.5, 1.5]


def test_a_stop_is_not_lost_on_work_that_is_about_to_begin(tmp_path: Path) -> None:
    stopped, about_to_begin = threading.Event(), threading.Event()
    running = threading.Event()

    def end(_: Postroom) -> None:
        if running.is_set():  # before, there is nothing to stop, as with workers that are not running yet
            stopped.set()

    lasts = Lasting(lambda: postroom.open(tmp_path / "room.db"), end)

    def work(_: Postroom) -> str:
        about_to_begin.set()
        sleep(0.5)
        running.set()
        return "stopped" if stopped.wait(20) else "the stop was lost"

    outcome: list[str | None] = []
    thread = threading.Thread(target=lambda: outcome.append(lasts.run(work)))
    thread.start()
    assert about_to_begin.wait(20)
    lasts.finish()
    thread.join(30)
    assert outcome == ["stopped"]


def test_a_signal_that_comes_while_workers_are_loaded_stops_them(tmp_path: Path) -> None:
    """It comes in the midst of the module that the stop needs."""
    with postroom.open(tmp_path / "room.db") as room:
        room.queues.create("orders")
    (tmp_path / "app.py").write_text(WORKERS)
    script = """
import builtins, signal, sys
real = builtins.__import__
def importing(name, *rest, **named):
    if name == "postroom.queues.relocating" and signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        builtins.__import__ = real
        signal.raise_signal(signal.SIGINT)
    return real(name, *rest, **named)
builtins.__import__ = importing
sys.argv[1:] = ["--room", "room.db", "work", "app:workers"]
from postroom.interfaces.cli.main import main
main()
"""
    command = [sys.executable, "-c", script]
    out = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert out.returncode == 0, out.stderr
    assert "Traceback" not in out.stderr
