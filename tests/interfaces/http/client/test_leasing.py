"""Leases of a room behind a server are those of a room that is here."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from tests.interfaces.http.conftest import Two

import postroom
from postroom import errors
from postroom.limits import WORKER_ATTEMPTS_AT_ONCE
from postroom.queues.leases.leased import LeasedMessage


def test_a_leased_message_is_ended_in_every_way(two: Two) -> None:
    queue = two.queue()
    two.it.send_many(queue, ["done", "release", "fail", "extend", "one", "two"])
    done = two.it.receive(queue, lease=60)
    assert isinstance(done.message, LeasedMessage)
    assert (done.message.attempts, done.message.body) == (1, "done")
    done.message.done()
    given = two.it.receive(queue, lease=True).message
    assert given is not None
    given.release()
    again = two.it.receive(queue, lease=True).message
    assert again is not None
    assert (again.key, again.attempts) == (given.key, 1)
    before = again.until
    again.extend(3600)
    assert again.until > before
    assert two.it.consumers.lease(again.lease).key == again.key
    assert again.fail("it broke", final=True) == f"{queue}.dead"
    rest = two.it.receive_many(queue, count=10, lease=60)
    assert len(rest) == 4
    two.it.consumers.done_many(rest)
    assert all(each.ended for each in rest)
    with pytest.raises(errors.LeaseOver):
        rest[0].done()
    assert not two.it.receive(queue, lease=5)
    for wrong in ({"segment": True}, {"area": 5}):
        with pytest.raises(errors.ArgumentInvalid):
            two.it.receive(queue, lease=5, **wrong)
    with pytest.raises(errors.ArgumentInvalid):
        two.it.receive_many(queue, count=0)


def test_work_in_a_block_in_a_loop_and_by_workers(two: Two) -> None:
    queue = two.queue()
    two.it.send_many(queue, [{"id": number} for number in range(6)])
    with two.it.work(queue, lease=30) as message:
        assert message is not None
        assert message.value == {"id": 0}
    with pytest.raises(ValueError, match="no"), two.it.work(queue, lease=30) as message:
        raise ValueError("no")
    seen = [each.value["id"] for each in two.it.each(queue, lease=30)]
    assert sorted(seen) == [1, 2, 3, 4, 5]
    two.it.send_many(queue, [{"id": number} for number in range(9)])
    workers = postroom.Workers()
    found: list[int] = []

    @workers.worker(queue, concurrency=3, lease=30)
    def handle(order: dict[str, int]) -> None:
        if order["id"] == 4:
            raise ValueError("four")
        found.append(order["id"])

    two.it.consumers.set_policy(queue, attempts=1)
    progress = two.it.consumers.run(until_idle=True, workers=workers)
    assert (progress.done, progress.dead) == (8, 1)
    assert sorted(found) == [0, 1, 2, 3, 5, 6, 7, 8]
    with two.it.work(queue) as nothing:
        assert nothing is None


def test_workers_are_idle_when_what_fails_waits_for_its_time(two: Two) -> None:
    """A queue without a limit of attempts delivers again at first at once, then later and later."""
    queue = two.queue()
    two.it.send_many(queue, ["bad", "good"])
    workers = postroom.Workers()
    workers.worker(queue)(lambda message: 1 / 0 if message.body == "bad" else None)
    progress = two.it.consumers.run(until_idle=True, workers=workers)
    assert (progress.done, progress.failed, progress.dead) == (1, WORKER_ATTEMPTS_AT_ONCE, 0)


def test_what_becomes_of_a_failed_message_is_told(two: Two) -> None:
    queue = two.queue()
    two.it.send_many(queue, ["bad"] * 2)
    for attempt in range(1, WORKER_ATTEMPTS_AT_ONCE + 1):
        message = two.it.receive(queue, lease=60).message
        assert isinstance(message, LeasedMessage)
        failed = message.fail_by_worker("no paper")
        assert message.ended
        assert (failed.dead_letters, failed.attempts_allowed) == (None, None)
        assert (failed.due is None) == (attempt < WORKER_ATTEMPTS_AT_ONCE), attempt
        assert failed.due is None or failed.due > message.until - timedelta(seconds=60)
    last = two.it.receive(queue, lease=60).message
    assert isinstance(last, LeasedMessage)
    assert last.fail_by_worker("no ink", final=True).dead_letters == f"{queue}.dead"
    with pytest.raises(errors.LeaseOver):
        last.fail_by_worker("no ink")


def test_a_long_wait_is_woken_by_a_message(two: Two) -> None:
    queue = two.queue()
    found: list[Any] = []
    threads = [
        threading.Thread(target=lambda: found.append(two.it.receive(queue, wait=30).message)),
        threading.Thread(target=lambda: found.append(two.it.receive(queue, lease=60, wait=30).message)),
    ]
    for thread in threads:
        thread.start()
    two.here.send(queue, "one", delay=0.2)  # wakes nobody when it is due
    two.here.send(queue, "two")
    for thread in threads:
        thread.join(60)
    assert sorted(each.body for each in found) == ["one", "two"]
