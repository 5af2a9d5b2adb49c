"""The columns of whole messages in the order of ``Stored``, and of whole lines of the journal in that of ``Line``."""

from __future__ import annotations

STORED = """m.key, q.name, m.created, m.processed, m.type, m.format, m.body, m.hash, m.properties, m.cause, m.position,
       m.number, coalesce(m.last, m.position)"""

#: An archive keeps every one of them.
JOURNAL = ("seq", "at", "verb", "message", "prior", "source", "target", "detail", "actor", "digest")
LINE = ", ".join(JOURNAL)
