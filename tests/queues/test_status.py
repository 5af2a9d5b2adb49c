"""Status keys: two digits, and those of answers are not those of refusals."""

from __future__ import annotations

import re

from postroom.errors import every_error
from postroom.queues import status


def test_an_answer_has_a_key_that_no_refusal_has() -> None:
    answers = {status.DONE, status.QUEUED, status.ALREADY}
    assert all(re.fullmatch(r"\d\d", key) for key in answers)
    assert len(answers) == 3
    assert answers.isdisjoint({kind.status for kind in every_error()})


def test_the_error_key_of_a_destination_tells_whether_it_was_served() -> None:
    assert (status.SERVED, status.REFUSED) == ("0", "1")
