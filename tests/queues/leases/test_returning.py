"""A message whose receiver was gone is back in its place, with its key and its counts; and the journal tells it."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import postroom
from postroom import faults
from postroom.errors import OutputFailed
from postroom.queues.results import Received
from postroom.room import Postroom

Shell = Callable[..., "subprocess.CompletedProcess[str]"]


#: Both kinds of queues and both stores. Commands take a second each: with the slow ones, two of the four have them.
FOUR = [f"{store} {mode}" for store in ("sqlite", "postgres") for mode in ("keep", "discard")]
OTHER = pytest.param(FOUR[3], marks=pytest.mark.slow)
TWO = pytest.mark.parametrize("where", [FOUR[0], OTHER], indirect=True)


@pytest.fixture(params=FOUR)
def where(request: pytest.FixtureRequest) -> str:
    value: str = request.param
    return value


@pytest.fixture
def url(where: str, request: pytest.FixtureRequest) -> str:
    value: str = request.getfixturevalue(f"{where.split()[0]}_url")
    return value


@pytest.fixture
def room(url: str, where: str) -> Iterator[Postroom]:
    with postroom.open(url) as opened:
        opened.queues.create("q", keep_processed=where.endswith("keep"))
        opened.send_many("q", ["one", "two", "three"])
        yield opened


@pytest.fixture
def shell(url: str) -> Shell:
    """Runs a line of a shell on the room of the test."""
    tools = str(Path(sys.executable).parent)
    environment = os.environ | {"POSTROOM_URL": url, "PATH": f"{tools}:{os.environ['PATH']}"}

    def run(line: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", line], env=environment | more, capture_output=True, text=True, timeout=60, check=False
        )

    return run


def bodies(room: Postroom) -> list[str]:
    return [message.body for message in room.queues.info("q")]


def verbs(room: Postroom, key: str) -> list[str]:
    return [event.verb for event in room.trace(key)]


def check(room: Postroom) -> None:
    """What the journal comes to is what is stored, and nothing is left in anyone's hand."""
    assert room.journal.verify().differences == ()
    assert room.store.read(lambda tx: tx.handouts.all()) == []


# --- whoever confirms by returning ---


def fail(received: Received) -> None:
    assert received.message is not None
    raise OSError("gone")


def test_a_message_that_could_not_be_delivered_is_back_in_its_place(room: Postroom) -> None:
    before = [message.key for message in room.queues.info("q")]
    with pytest.raises(OSError, match="gone"):
        room.receive("q", deliver=fail)
    assert [message.key for message in room.queues.info("q")] == before
    (count,) = room.queues.accept("q").queues
    assert (count.unprocessed, count.processed) == (3, 0)
    assert verbs(room, before[0]) == ["put", "take", "return"]
    check(room)
    received = [room.receive("q").message for _ in range(3)]
    assert [message and message.key for message in received] == before
    check(room)


def test_what_was_delivered_is_taken(room: Postroom) -> None:
    seen: list[str] = []

    def see(received: Received) -> None:
        assert received.message is not None
        seen.append(received.message.body)

    while room.receive("q", deliver=see):
        pass
    assert seen == ["one", "two", "three"]
    assert bodies(room) == []
    check(room)


def test_while_it_is_written_others_get_the_next_and_senders_wait_for_nothing(room: Postroom, url: str) -> None:
    with postroom.open(url) as other:

        def meanwhile(received: Received) -> None:
            found = other.receive("q").message
            assert found is not None
            assert found.body == "two"
            other.send("q", "four")
            raise OSError("gone")

        with pytest.raises(OSError, match="gone"):
            room.receive("q", deliver=meanwhile)
    assert bodies(room) == ["one", "three", "four"]
    check(room)


def test_a_mode_that_changes_meanwhile_loses_nothing(room: Postroom, url: str) -> None:
    with postroom.open(url) as other:

        def meanwhile(received: Received) -> None:
            other.queues.set_mode("q", keep_processed=False)
            raise OSError("gone")

        with pytest.raises(OSError, match="gone"):
            room.receive("q", deliver=meanwhile)
    assert bodies(room) == ["one", "two", "three"]
    check(room)


def test_a_waiter_gets_what_is_given_back(room: Postroom, url: str) -> None:
    for _ in range(2):
        assert room.receive("q")
    found: list[str] = []

    def wait() -> None:
        with postroom.open(url) as other:
            message = other.receive("q", wait=20).message
            assert message is not None
            found.append(message.body)

    waiting = threading.Thread(target=wait)

    def late(received: Received) -> None:
        waiting.start()
        time.sleep(0.5)
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        room.receive("q", deliver=late)
    waiting.join()
    assert found == ["three"]
    check(room)


def test_segments_that_could_not_be_delivered_come_again(room: Postroom) -> None:
    while room.receive("q"):
        pass
    key = room.send("q", "a\nb\nc").key
    seen: list[str] = []

    def see(received: Received) -> None:
        assert received.message is not None
        seen.append(received.message.body)

    with pytest.raises(OSError, match="gone"):
        room.receive("q", segment=True, deliver=fail)
    room.send("q", "the queue is free")
    room.receive("q", segment=True, deliver=see)
    with pytest.raises(OSError, match="gone"):
        room.receive("q", segment=True, deliver=fail)
    room.receive("q", segment=True, deliver=see)
    with pytest.raises(OSError, match="gone"):
        room.receive("q", segment=True, deliver=fail)
    assert room.receive("q", segment=True, deliver=see).end_of_message
    assert [line.strip() for line in seen] == ["a", "b", "c"]
    assert verbs(room, key)[-1] == "take"
    assert bodies(room) == ["the queue is free"]
    check(room)


def test_what_comes_back_to_a_sphere_that_failed_meanwhile_is_withdrawn(room: Postroom) -> None:
    while room.receive("q"):
        pass

    def meanwhile(received: Received) -> None:
        sphere.abort("changed our mind")
        raise OSError("gone")

    sphere = room.sphere("trip")
    sphere.send("q", "book 7", compensation="cancel 7")
    with pytest.raises(OSError, match="gone"):
        room.receive("q", deliver=meanwhile)
    assert bodies(room) == ["cancel 7"]
    check(room)


def test_a_message_of_a_sphere_that_goes_on_is_back_and_can_be_withdrawn(room: Postroom) -> None:
    while room.receive("q"):
        pass
    sphere = room.sphere("trip")
    sphere.send("q", "book 7", compensation="cancel 7")
    with pytest.raises(OSError, match="gone"):
        room.receive("q", deliver=fail)
    assert bodies(room) == ["book 7"]
    sphere.abort("changed our mind")
    assert bodies(room) == []
    check(room)


@TWO
@pytest.mark.parametrize("point", ["receive.committed", "confirm.begun", "confirm.committing", "give-back.begun"])
def test_killed_before_the_confirmation_it_is_back_for_whoever_comes(room: Postroom, url: str, point: str) -> None:
    output = "> /dev/full" if point.startswith("give") else ""
    line = f"exec {sys.executable} -m postroom.interfaces.cli.main receive q {output}"
    child = subprocess.run(
        ["bash", "-c", line],
        env=os.environ | {"POSTROOM_URL": url, "POSTROOM_FAULT": f"{point}:kill"},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert child.returncode == -signal.SIGKILL, child.stderr
    message = room.receive("q").message  # a room that was open before finds it, too
    assert message is not None
    assert message.body == "one"
    assert verbs(room, message.key) == ["put", "take", "return", "take"]
    with postroom.open(url) as later:
        assert bodies(later) == ["two", "three"]
        check(later)


@TWO
def test_killed_after_the_confirmation_it_is_taken(room: Postroom, url: str, shell: Shell) -> None:
    killed = shell("postroom receive q", POSTROOM_FAULT="confirm.committed:kill")
    assert killed.stdout == "one\n"
    with postroom.open(url) as later:
        assert bodies(later) == ["two", "three"]
        check(later)


# --- whoever reads what a command writes ---


@TWO
@pytest.mark.parametrize("options", ["", "--segment", "--follow --json"])
def test_a_command_whose_reader_is_gone_takes_nothing(room: Postroom, shell: Shell, options: str) -> None:
    assert shell(f"postroom receive q {options} | true").stderr == ""
    assert bodies(room) == ["one", "two", "three"]
    check(room)


@TWO
def test_a_reader_that_leaves_after_the_first_message_has_the_first(room: Postroom, shell: Shell) -> None:
    assert shell("postroom receive q --follow | head -1").stdout == "one\n"
    assert bodies(room) == ["two", "three"]
    check(room)


@TWO
def test_a_reader_that_closes_its_end_unread_has_nothing(room: Postroom, shell: Shell) -> None:
    shell("postroom receive q | (sleep 0.5; exec 0<&-; sleep 0.3)")
    assert bodies(room) == ["one", "two", "three"]
    check(room)


@TWO
def test_a_reader_that_takes_its_time_gets_the_message(room: Postroom, shell: Shell) -> None:
    assert shell("postroom receive q | (sleep 1.5; cat)").stdout == "one\n"
    assert bodies(room) == ["two", "three"]
    check(room)


@TWO
@pytest.mark.parametrize(
    ("options", "output"), [("", "> /dev/full"), ("--segment", "> /dev/full"), ("--json", ">&-"), ("", ">&-")]
)
def test_output_that_fails_is_told_and_takes_nothing(room: Postroom, shell: Shell, options: str, output: str) -> None:
    failed = shell(f"postroom receive q {options} {output}")
    assert failed.returncode == 1
    assert failed.stderr.startswith("postroom: output-failed: message 00001.00001 of q could not be written out: ")
    assert bodies(room) == ["one", "two", "three"]
    check(room)


@TWO
def test_output_that_is_interrupted_takes_nothing(room: Postroom, url: str) -> None:
    while room.receive("q"):
        pass
    room.send("q", "x" * 500_000)  # more than a pipe holds: the command stands in the midst of its writing
    read, write = os.pipe()
    with subprocess.Popen(
        [sys.executable, "-m", "postroom.interfaces.cli.main", "receive", "q"],
        env=os.environ | {"POSTROOM_URL": url},
        stdout=write,
        stderr=subprocess.PIPE,
    ) as child:
        os.close(write)
        os.read(read, 10)
        child.send_signal(signal.SIGINT)
        assert child.wait(20) == 130
    os.close(read)
    (message,) = room.queues.info("q")
    assert len(message.body) == 500_000
    check(room)


def test_output_that_took_longer_than_its_time_is_told(room: Postroom, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a process on another machine only the time can tell whether it has ended."""
    monkeypatch.setattr("postroom.store.tables.handouts.HANDOUT_SECONDS", -1.0)
    monkeypatch.setattr("postroom.store.tables.handouts.is_alive", lambda owner: None)

    def slow(received: Received) -> None:
        room._parts.settle()

    with pytest.raises(OutputFailed, match="others can receive it again"):
        room.receive("q", deliver=slow)
    assert bodies(room) == ["one", "two", "three"]
    check(room)


# --- whoever was cancelled while a thread of theirs waited ---


def until(holds: Callable[[], bool]) -> bool:
    end = time.monotonic() + 60
    while not holds() and time.monotonic() < end:
        gc.collect()
        time.sleep(0.02)
    return holds()


def test_a_cancelled_coroutine_has_not_received_what_its_thread_took(room: Postroom) -> None:
    while room.receive("q"):
        pass

    async def cancelled() -> None:
        waiting = asyncio.create_task(asyncio.to_thread(lambda: room.receive("q", wait=5)))
        await asyncio.sleep(0.3)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await asyncio.to_thread(room.send, "q", "next")

    asyncio.run(cancelled())
    assert until(lambda: bodies(room) == ["next"])
    (message,) = room.queues.info("q")
    assert verbs(room, message.key) == ["put", "take", "return"]
    check(room)


def test_a_cancelled_coroutine_whose_thread_had_taken_already_has_not_received(room: Postroom) -> None:
    async def cancelled() -> None:
        receiving = asyncio.create_task(asyncio.to_thread(room.receive, "q"))
        await asyncio.sleep(0)
        time.sleep(0.3)  # the thread is done, and the loop has not heard of it
        receiving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await receiving

    asyncio.run(cancelled())
    assert until(lambda: bodies(room) == ["one", "two", "three"])
    check(room)


def test_a_coroutine_that_looks_has_received(room: Postroom) -> None:
    async def receives() -> list[str]:
        found = []
        for _ in range(3):
            received = await asyncio.to_thread(room.receive, "q")
            message = received.message
            assert message is not None
            found.append(message.body)
        assert not await asyncio.to_thread(room.receive, "q")
        return found

    assert asyncio.run(receives()) == ["one", "two", "three"]
    gc.collect()
    assert bodies(room) == []
    check(room)


@pytest.mark.parametrize(
    "look",
    [
        bool,
        list,
        lambda answer: answer[0],
        lambda answer: answer.as_dict(),
        lambda answer: answer == (),
        lambda a: a.message,
    ],
)
def test_every_way_to_look_at_an_answer_is_to_receive_it(room: Postroom, look: Callable[[Received], object]) -> None:
    with ThreadPoolExecutor(1) as pool:
        look(pool.submit(room.receive, "q").result())
    room._parts.verbs.close()
    assert bodies(room) == ["two", "three"]
    check(room)


def test_an_answer_that_nobody_looks_at_is_given_back_even_when_the_room_is_closed(room: Postroom, url: str) -> None:
    with ThreadPoolExecutor(1) as pool, postroom.open(url) as other:
        held = [pool.submit(other.receive, "q").result()]
    assert "not read yet" in repr(held[0])
    held.clear()
    assert until(lambda: bodies(room) == ["one", "two", "three"])
    check(room)


def test_dropping_an_answer_in_the_midst_of_a_call_of_the_room_is_harmless(room: Postroom) -> None:
    with ThreadPoolExecutor(1) as pool:
        held = [pool.submit(room.receive, "q").result()]

    def work(tx: object) -> None:
        held.clear()

    room.store.read(work)
    assert until(lambda: bodies(room) == ["one", "two", "three"])
    check(room)


def test_segments_that_a_cancelled_caller_did_not_see_come_again(room: Postroom) -> None:
    while room.receive("q"):
        pass
    room.send("q", "a\nb")
    with ThreadPoolExecutor(1) as pool:
        for _ in range(2):
            pool.submit(lambda: room.receive("q", segment=True)).result()
            assert until(lambda: [queue.locked_by for queue in room.queues.accept().queues] == [None])
        for expected in ("a", "b"):
            received = pool.submit(lambda: room.receive("q", segment=True)).result()
            assert received.message is not None
            assert received.message.body.strip() == expected
    check(room)


def test_the_main_thread_receives_by_calling(room: Postroom) -> None:
    room.receive("q")
    assert bodies(room) == ["two", "three"]
    assert faults.armed is None
