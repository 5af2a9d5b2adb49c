"""The two-digit status keys of ANSI COBOL, as the verbs answer them. Refusals carry theirs in ``errors.py``."""

from __future__ import annotations

DONE = "00"
QUEUED = "10"  # accepted by a queue that is on hold for output: it stays there until someone enables the queue
ALREADY = "15"  # every queue was in that state before

#: Error keys of one destination in a send to several.
SERVED, REFUSED = "0", "1"
