"""The verbs of queues for one user on one store: send, receive, look, hold. Each is one transaction.

Every result and every error has a status key, so that interfaces of other languages can be thin.
"""

from __future__ import annotations

from postroom.queues.holding import HoldVerbs
from postroom.queues.looking import LookVerbs
from postroom.queues.receiving import ReceiveVerbs
from postroom.queues.sending import SendVerbs


class Verbs(SendVerbs, ReceiveVerbs, LookVerbs, HoldVerbs):
    """All verbs."""
