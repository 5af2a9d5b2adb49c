"""The columns of journal lines, in the order of ``Line``, and of what an archive has besides."""

from __future__ import annotations

#: An archive keeps every one of them.
JOURNAL = ("seq", "at", "verb", "message", "prior", "source", "target", "detail", "actor", "digest")
LINE = ", ".join(JOURNAL)
#: What is known of messages that were gone by the end of an archive.
DEPARTED = ("key", "last", "cause", "type")
