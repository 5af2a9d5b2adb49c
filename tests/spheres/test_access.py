"""What spheres need of queues is what a room gives them, method by method."""

from __future__ import annotations

import inspect

from postroom.room.sphere_access import SphereAccess
from postroom.spheres.access import QueueAccess


def test_a_room_gives_spheres_all_that_they_need() -> None:
    wanted = {name: value for name, value in vars(QueueAccess).items() if inspect.isfunction(value) and name[0] != "_"}
    assert len(wanted) == 10
    for name, method in wanted.items():
        given = inspect.signature(getattr(SphereAccess, name)).parameters
        assert list(given) == list(inspect.signature(method).parameters), name
