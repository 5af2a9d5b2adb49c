"""Reads a large file in a process of its own, while this one stores what was read before.

``python -m postroom.exchange.reading_ahead`` is that process.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from postroom.errors import FileUnreadable
from postroom.exchange.parts import Batch, Part, Reading, batches
from postroom.limits import READ_AHEAD_BYTES
from postroom.model.message import Draft


@contextmanager
def read_ahead(reading: Reading, size: int) -> Iterator[Iterator[Batch]]:
    """The batches of a file of so many bytes; whatever their reader raises comes in its place.

    At the end of the block nothing reads any more.
    """
    if size < READ_AHEAD_BYTES:  # starting a process would take longer
        yield batches(reading)
        return
    process = _started()
    try:
        yield _received(process, reading)
    finally:
        process.kill()
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            pipe.close()
        process.wait()


def _started() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "postroom.exchange.reading_ahead"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        start_new_session=True,  # a signal from the keyboard is for us
        bufsize=1 << 16,
    )


def _received(process: subprocess.Popen[bytes], reading: Reading) -> Iterator[Batch]:
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        pickle.dump(reading, process.stdin)
        process.stdin.flush()
        while (read := pickle.load(process.stdout)) is not None:  # noqa: S301 - it is ours
            if isinstance(read, BaseException):
                raise read
            yield _unpacked(*read)
    except (EOFError, BrokenPipeError, pickle.UnpicklingError):
        why = f"the process that read it ended with status {process.wait()}"
        raise FileUnreadable(file=str(reading.file), why=why) from None


def _packed(batch: Batch) -> tuple[Part, int, list[tuple[Any, ...]]]:
    """A batch by columns, which are packed and unpacked in a third of the time."""
    return batch.part, batch.place, list(zip(*batch.drafts, strict=True))


def _unpacked(part: Part, place: int, columns: list[tuple[Any, ...]]) -> Batch:
    return Batch(part, place, list(map(Draft._make, zip(*columns, strict=True))))


def main(requests: BinaryIO, answers: BinaryIO) -> None:
    try:
        for batch in batches(pickle.load(requests)):  # noqa: S301 - we wrote it
            pickle.dump(_packed(batch), answers)
            answers.flush()
        pickle.dump(None, answers)
    except BrokenPipeError:  # nobody wants more of it
        os._exit(0)
    except Exception as error:
        pickle.dump(error, answers)
    answers.flush()


if __name__ == "__main__":
    main(sys.stdin.buffer, sys.stdout.buffer)
