"""The room: one store and every capability on it, under one name.

>>> import postroom, tempfile, os
>>> with tempfile.TemporaryDirectory() as folder, postroom.open(os.path.join(folder, "room.db")) as room:
...     queue = room.queues.create("greetings")
...     sent = queue.send("hello")
...     room.receive("greetings").message.body
'hello'
"""

from __future__ import annotations

from postroom.room.opening import DEFAULT_URL, Postroom, open

__all__ = ["DEFAULT_URL", "Postroom", "open"]
