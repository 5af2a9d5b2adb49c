"""An owner in a process of its own, which does what it is told: ``python -m tests.spheres.owner ROOM ID HEARTBEAT``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psycopg

import postroom
from postroom.errors import PostroomError

from .bank import pay

ROOT = Path(__file__).parents[2]


def work(url: str, id: str, heartbeat: str, bank: str = "") -> None:
    with postroom.open(url) as room:
        sphere = room.sphere(id, heartbeat=float(heartbeat))
        if bank:
            connection = psycopg.connect(bank)
            sphere.enlist(connection)
            pay(connection, id)
        print("ready", flush=True)
        for line in sys.stdin:
            try:
                if line == "commit\n":
                    sphere.commit()
                elif line == "abort\n":
                    sphere.abort()
                else:
                    queue = line.strip()
                    sphere.send(queue, f"do {id}", compensation=f"undo {id}")
                print("done", flush=True)
            except PostroomError as error:
                print(error.code, flush=True)


class Owner:
    """That process."""

    def __init__(self, url: str, id: str, heartbeat: float, bank: str = "") -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.spheres.owner", url, id, str(heartbeat), *([bank] if bank else [])],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.hear() == "ready"

    def hear(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def tell(self, what: str) -> str:
        """``commit``, ``abort``, or a queue to send to; answers with ``done`` or the code of the error."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{what}\n")
        self.process.stdin.flush()
        return self.hear()

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()

    def __enter__(self) -> Owner:
        return self

    def __exit__(self, *error: object) -> None:
        self.kill()


if __name__ == "__main__":
    work(*sys.argv[1:])
