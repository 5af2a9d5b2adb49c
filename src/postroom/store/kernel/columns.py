"""The columns of journal lines, in the order of ``Line``."""

from __future__ import annotations

#: An archive keeps every one of them.
JOURNAL = ("seq", "at", "verb", "message", "prior", "source", "target", "detail", "actor", "digest")
LINE = ", ".join(JOURNAL)
