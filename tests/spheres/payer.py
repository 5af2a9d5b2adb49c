"""An owner that books and pays, and is killed at a fault point: ``python -m tests.spheres.payer KIND ROOM BANK``."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import psycopg
import sqlalchemy
from sqlalchemy import orm

import postroom

from .bank import pay

ROOT = Path(__file__).parents[2]


def work(kind: str, url: str, bank: str) -> None:
    with postroom.open(url) as room, room.sphere("booking", heartbeat=0.2) as sphere:
        sphere.send("travel", "book", compensation="cancel")
        if kind == "session":
            engine = sqlalchemy.create_engine(bank.replace("postgresql://", "postgresql+psycopg://"))
            session = orm.Session(engine, twophase=True)
            sphere.enlist(session)
            session.execute(sqlalchemy.text("INSERT INTO payments VALUES ('booking', 1, 1)"))
            sphere.commit()
        else:
            with closing(psycopg.connect(bank)) as connection:
                sphere.enlist(connection)
                pay(connection, "booking")
                sphere.commit()


def killed_at(point: str, kind: str, url: str, bank: str) -> None:
    """Run an owner until it is killed at a fault point."""
    child = subprocess.run(
        [sys.executable, "-m", "tests.spheres.payer", kind, url, bank],
        cwd=ROOT,
        env={**os.environ, "POSTROOM_FAULT": f"{point}:kill"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert child.returncode == -signal.SIGKILL, child.stderr


if __name__ == "__main__":
    work(*sys.argv[1:])
