"""A snapshot of a replay at a line, so that a later replay can begin there."""

from __future__ import annotations

import json
import zlib
from typing import Any

from postroom.errors import StoreCorrupt
from postroom.store.proof.replay import Counts, Place, Settings, Told

_FORMAT = 1


def is_of(state: bytes, told: Told) -> bool:
    """Whether a replay matches a snapshot; parts that an earlier version did not write are ignored."""
    noted = read(state)
    came = bool(noted.came)
    return written(told, came=came) == written(noted, came=came)


def written(told: Told, *, came: bool = True) -> bytes:
    """A snapshot; of deleted messages only those that may come back."""
    shape = {
        "format": _FORMAT,
        "lines": told.lines,
        "messages": sorted((key, *place) for key, place in told.messages.items()),
        "departed": sorted((key, last) for key, last in told.departed.items() if key in told.handed),
        "queues": sorted((id, *settings) for id, settings in told.queues.items()),
        "counts": sorted((id, *counts) for id, counts in told.counts.items()),
        "locks": sorted((queue, *lock) for queue, lock in told.locks.items()),
        "tokens": sorted((*names, message) for names, message in told.tokens.items()),
        "dossiers": sorted((message, *dossier) for message, some in told.dossiers.items() for dossier in some),
        "timers": sorted((id, *timer) for id, timer in told.timers.items()),
        "outbox": sorted((id, *effect) for id, effect in told.outbox.items()),
        "nodes": sorted(told.nodes),
        "gateways": sorted(told.gateways.items()),
        "stations": sorted(told.stations.items()),
        "principals": sorted(told.principals),
        "archives": sorted(told.archives.items()),
        "retentions": sorted(told.retentions.items()),
        "leases": sorted(told.leases.items()),
        "policies": sorted(told.policies.items()),
        "schedules": sorted(told.schedules.items()),
        "version": told.version,
    }
    if came:
        shape["came"] = sorted(told.came.items())
    return zlib.compress(json.dumps(shape, ensure_ascii=False, separators=(",", ":")).encode(), 6)


def read(state: bytes) -> Told:
    try:
        shape = json.loads(zlib.decompress(state))
        if shape["format"] != _FORMAT:
            raise StoreCorrupt(why="the state at the end of the archive was written by a newer version")
        return _told(shape)
    except (ValueError, KeyError, TypeError, zlib.error) as error:
        raise StoreCorrupt(why=f"the state at the end of the archive cannot be read: {error}") from error


def _told(shape: dict[str, Any]) -> Told:
    told = Told(
        lines=shape["lines"],
        messages={key: Place(*place) for key, *place in shape["messages"]},
        departed=dict(shape["departed"]),
        queues={id: Settings(*settings) for id, *settings in shape["queues"]},
        counts={id: Counts(*counts) for id, *counts in shape["counts"]},
        locks={queue: (message, segment) for queue, message, segment in shape["locks"]},
        tokens={(machine, entity): message for machine, entity, message in shape["tokens"]},
        timers={id: (kind, due) for id, kind, due in shape["timers"]},
        outbox={id: (state, attempts) for id, state, attempts in shape["outbox"]},
        nodes=set(shape["nodes"]),
        gateways=dict(shape.get("gateways", ())),  # earlier versions had none
        stations=dict(shape["stations"]),
        principals={(kind, name) for kind, name in shape["principals"]},
        archives=dict(shape["archives"]),
        retentions=dict(shape["retentions"]),
        leases=dict(shape.get("leases", ())),
        policies=dict(shape.get("policies", ())),
        schedules=dict(shape.get("schedules", ())),
        version=shape["version"],
        came=dict(shape.get("came", ())),
    )
    told.handed = set(told.departed)
    for message, station, name in shape["dossiers"]:
        told.dossiers.setdefault(message, set()).add((station, name))
    return told
