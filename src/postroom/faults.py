"""Named fault points: places where tests inject faults.

``reach("send.committing")`` costs one comparison unless a fault is armed. Tests arm one in a child process by
``POSTROOM_FAULT=POINT:ACTION[:NTH]``; the action is ``kill`` (SIGKILL to ourselves), ``stop`` (SIGSTOP), ``raise`` or
``delay``.
"""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass

#: Those of stations, which may touch several stores.
STATION_LABELS = tuple(
    """
    login node station key-block create modify dossier ship get arrive conclude index query-number query-open
    query-close image-table
    """.split()
)
#: Those of procedures.
PROCEDURE_LABELS = ("desks", "procedure", "switch")
#: Those of counters.
COUNTER_LABELS = ("counter",)
#: Those of spheres and other machines of states.
SPHERE_LABELS = tuple(
    """
    machine sphere sphere-send sphere-require sphere-join sphere-committing sphere-committed sphere-aborting
    compensate acknowledge settle heartbeat check watch
    """.split()
)
#: Those of gateways.
GATEWAY_LABELS = ("gateway", "gateway-in", "gateway-forget")
#: Commits of reliable messaging, whose partners are killed at any moment.
SEQUENCE_LABELS = ("sequence",)
#: That of executors, which leave their answers in the store.
STAGING_LABELS = ("stage",)
#: Those of whoever looks after a room.
UPKEEP_LABELS = ("archive", "retention", "upkeep", "restore")
#: Those of consumers who lease messages.
CONSUMER_LABELS = ("hand-out", "done", "release", "extend", "fail", "policy", "relocate", "schedule", "together")
#: Those of streams from outside: a batch is pinned to a version of the graph, and done.
STREAM_LABELS = ("stream-open", "stream-pin", "stream")
#: Every transaction is labelled, and every label has the three moments around its commit.
LABELS = (
    *STATION_LABELS,
    *PROCEDURE_LABELS,
    *COUNTER_LABELS,
    *SPHERE_LABELS,
    *STAGING_LABELS,
    *UPKEEP_LABELS,
    *CONSUMER_LABELS,
    *"""
    send send-many distribute receive segment confirm give-back mend unlock hold mode load load-collection
    publish subscribe unsubscribe connect disconnect principal create-queue remove-queue set-password
    define-type claim step sweep follow deliver lease release-lease outbox-attempt outbox-result outbox-retry
    outbox-drop
    """.split(),
    *GATEWAY_LABELS,
    *SEQUENCE_LABELS,
    *STREAM_LABELS,
)
MOMENTS = ("begun", "committing", "committed")
#: Between writing files and telling the store of them, or the other way about.
FILE_POINTS = ("archive.part", "archive.renamed", "backup.copied", "backup.renamed")
OTHERS = ("migrate.statement", "gateway.ran", *FILE_POINTS)
POINTS = tuple(f"{label}.{moment}" for label in LABELS for moment in MOMENTS) + OTHERS


class FaultInjected(Exception):
    """Raised by an armed fault point; never seen in production."""


@dataclass
class Armed:
    point: str
    action: str
    countdown: int


armed: Armed | None = None


def arm(point: str, action: str, nth: int = 1) -> None:
    """Trip the nth time that ``point`` is reached; for tests only."""
    global armed
    if point not in POINTS:
        raise ValueError(f"no fault point {point!r}")
    if action not in ("kill", "raise", "delay", "stop"):
        raise ValueError(f"no fault action {action!r}")
    armed = Armed(point, action, nth)


def disarm() -> None:
    global armed
    armed = None


def reach(point: str) -> None:
    """Pass a fault point. Callers on hot paths test ``armed`` themselves first."""
    if armed is None or armed.point != point:
        return
    armed.countdown -= 1
    if armed.countdown != 0:
        return
    if armed.action == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif armed.action == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif armed.action == "raise":
        raise FaultInjected(point)
    else:
        time.sleep(0.2)


def _arm_from_environment() -> None:
    wish = os.environ.get("POSTROOM_FAULT")
    if wish:
        point, action, *nth = wish.split(":")
        arm(point, action, int(nth[0]) if nth else 1)


_arm_from_environment()
