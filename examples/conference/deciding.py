"""What three verdicts come to. Procedures find the function by its name; POSTROOM_FUNCTIONS names this module."""

from __future__ import annotations

import postroom


@postroom.function
def decision(*verdicts: object) -> str:
    """The majority of those who answered."""
    accepted, rejected = verdicts.count("accept"), verdicts.count("reject")
    if accepted == rejected:
        return "undecided"
    return "accepted" if accepted > rejected else "rejected"
