"""What a worker may take: memory, time, and a place behind the engine. Each in a process of its own."""

from __future__ import annotations

import os
import resource
import signal
import time
from collections.abc import Callable

from postroom.engine.spark.worker import Bounds


def in_child(work: Callable[[], object]) -> int:
    """How a process ends that does the work: its code, or the signal that ended it."""
    child = os.fork()
    if child == 0:
        try:
            os._exit(int(bool(work())))
        finally:
            os._exit(99)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_worker_beside_the_engine_goes_behind_it() -> None:
    assert Bounds.beside("local[2]").nice > 0
    assert Bounds.beside("spark://host:7077").nice == 0


def test_a_task_that_takes_too_much_memory_fails() -> None:
    def work() -> bool:
        Bounds(memory=300 * 1024**2).settle()
        try:
            bytearray(400 * 1024**2)
        except MemoryError:
            return resource.getrlimit(resource.RLIMIT_DATA)[0] == 300 * 1024**2
        return False

    assert in_child(work) == 1


def test_a_chunk_that_takes_too_long_ends_its_process_and_one_in_time_does_not() -> None:
    def work(seconds: float) -> bool:
        with Bounds(seconds=0.1).deadline(0):
            time.sleep(seconds)
        time.sleep(0.2)  # the time of what is done counts no more
        return True

    assert in_child(lambda: work(5.0)) == -signal.SIGALRM
    assert in_child(lambda: work(0.0)) == 1


def test_processor_time_counts_what_is_computed_and_no_waiting() -> None:
    def work(seconds: float) -> bool:
        with Bounds(seconds=0.1).deadline(0, processor=True):
            time.sleep(0.3)
            while time.process_time() < seconds:
                pass
        return True

    assert in_child(lambda: work(60.0)) == -signal.SIGPROF
    assert in_child(lambda: work(0.0)) == 1


def test_a_larger_chunk_may_take_longer() -> None:
    assert Bounds(seconds=1).deadline(1_000_000)._seconds > Bounds(seconds=1).deadline(10)._seconds
