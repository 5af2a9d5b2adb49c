"""The guide lists what cannot be done through a server: exactly what every method of both rooms says."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from postroom.errors import NotRemote
from postroom.interfaces.http.client import remote, spheres
from postroom.interfaces.http.contract.operations import PARTS
from postroom.model.message import Membership

_PAGE = Path(__file__).parents[2] / "docs/guide/serve.md"
_AT_THE_SERVER = {"lease", "held"}  # the one is the same object on both sides, the other only the server has


def _sides() -> Iterator[tuple[str, type, Any]]:
    """Each part of a room, its class here, and what stands for it through a server."""
    parts: Any = None
    made: dict[str, Any] = {
        "client": remote.RemoteClient(parts, "ann"),
        "station": remote.RemoteStation(parts, "John"),
        "sphere": spheres.RemoteSphere,
    }
    for name, kind in PARTS.items():
        if name not in _AT_THE_SERVER:
            yield name, kind, made[name] if name in made else getattr(remote, f"Remote{name.title()}")
    yield "membership", Membership, spheres.RemoteMembership


def _is_possible(far: Any, verb: str) -> bool:
    try:
        method = getattr(far, verb)
    except NotRemote:
        return False
    return not callable(method) or inspect.signature(method).return_annotation != "NoReturn"


def test_the_guide_lists_what_is_not_possible_through_a_server() -> None:
    impossible = {
        f"{part}.{verb}"
        for part, here, far in _sides()
        for kind in here.__mro__[:-1]
        for verb in vars(kind)
        if not verb.startswith("_") and not _is_possible(far, verb)
    }
    assert {"engine.run", "client.present", "sphere.enlist", "membership.join", "station.forms"} <= impossible
    (told,) = re.findall(r"Not possible through a server:\n(.*?)Such calls raise", _PAGE.read_text(), re.DOTALL)
    works = set(re.findall(r"`(\w+\.\w+)` works", told))
    assert set(re.findall(r"`(\w+\.\w+)`", told)) - works == impossible
    assert not works & impossible
