"""The verbs of queues for one user on one store: send, receive, look, hold. Each is one transaction.

Every answer has a status key, and every refusal is a typed error with one, so that an interface of another language
can be thin.
"""

from __future__ import annotations

from postroom.queues.holding import HoldVerbs
from postroom.queues.looking import LookVerbs
from postroom.queues.receiving import ReceiveVerbs
from postroom.queues.sending import SendVerbs


class Verbs(SendVerbs, ReceiveVerbs, LookVerbs, HoldVerbs):
    """All of them."""
