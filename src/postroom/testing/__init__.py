"""For tests of programs that use Postroom: a temporary room, and a clock that the test controls.

``pytest_plugins = ["postroom.testing.plugin"]`` gives tests the fixtures ``room`` and ``clock``. Nothing here starts
Spark.
"""

from postroom.testing.rooms import HandClock, temporary_room

__all__ = ["HandClock", "temporary_room"]
