"""For tests of programs that use Postroom: a room that goes with the test, and a clock that the test turns.

``pytest_plugins = ["postroom.testing.plugin"]`` gives tests the fixtures ``room`` and ``clock``. Nothing here starts
Spark.
"""

from postroom.testing.rooms import HandClock, temporary_room

__all__ = ["HandClock", "temporary_room"]
