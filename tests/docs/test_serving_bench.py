"""The benchmark of the server runs, and its clients part in peace; figures are for a machine at rest."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import results
import serving
import stomping
from bounds import BOUNDS
from rabbit import Rabbit

ROOT = Path(__file__).parents[2]
ANSWER = b'HTTP/1.1 201 Created\r\ncontent-length: 16\r\n\r\n{"status": "00"}'


def test_a_quick_run_has_every_figure_that_was_asked(tmp_path: Path) -> None:
    kept = tmp_path / "serving.json"
    command = [sys.executable, str(ROOT / "bench" / "serving.py"), "--quick", "--json", str(kept)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=200, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "Traceback" not in ran.stderr
    assert "Error" not in ran.stderr
    found = results.read(kept)["serving"]
    assert {line.bound for line in found.lines} - {None} == set(BOUNDS["serving"])
    assert all(line.result > 0 for line in found.lines)


def test_a_broker_takes_turns_with_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bare server that speaks STOMP stands for the broker, which few machines have."""

    @contextmanager
    def broker(folder: Path) -> Iterator[Rabbit]:
        with stomping.server("-c", stomping.BARE) as (port, pid):
            yield Rabbit(port, pid)

    monkeypatch.setattr("serving.rabbit", broker)
    lines = {line.against: line for line in serving.ServingBench(tmp_path, serving.QUICK, "").lines()}
    theirs = lines[serving.RABBIT]
    assert theirs.bound is None
    assert theirs.other is not None
    assert theirs.measured is not None
    assert theirs.result == pytest.approx(theirs.measured / theirs.other)


class Server(asyncio.Protocol):
    """Answers a request after a while, and keeps what it has met."""

    def __init__(self, met: list[int], answer: bytes) -> None:
        self._met, self._answer = met, answer

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._met.append(data.count(b"POST /queues/orders/messages"))
        asyncio.get_running_loop().call_later(0.01, self._transport.write, self._answer)


async def load(count: int, rate: float | None, answer: bytes = ANSWER) -> tuple[serving.Answered, int, list[Any]]:
    """What clients had, how many requests the server met, and what the event loop had to complain about."""
    loop, met, complaints = asyncio.get_running_loop(), list[int](), list[Any]()
    loop.set_exception_handler(lambda _, about: complaints.append(about))
    server = await loop.create_server(lambda: Server(met, answer), "127.0.0.1", 0)
    async with server:
        try:
            had = await serving.answered(server.sockets[0].getsockname()[1], "token", count, rate)
        finally:
            await asyncio.sleep(0.3)  # longer than the gap between two requests of one client
    return had, sum(met), complaints


@pytest.mark.parametrize("rate", [None, 400.0])
def test_clients_end_after_an_answer_and_ask_for_no_more_than_was_wanted(rate: float | None) -> None:
    had, met, complaints = asyncio.run(load(100, rate))
    assert (len(had.took), met, complaints) == (100, 100, [])
    assert had.took == sorted(had.took)
    assert had.slow == had.took[99] * 1000
    assert rate is None or had.rate <= rate


def test_a_refusal_ends_the_measurement() -> None:
    with pytest.raises(AssertionError, match="429"):
        asyncio.run(load(100, None, ANSWER.replace(b"201 Created", b"429 Too Many Requests")))
