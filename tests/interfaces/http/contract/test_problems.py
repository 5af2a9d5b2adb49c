"""Errors as problems, and back."""

from __future__ import annotations

import json

from postroom import errors
from postroom.interfaces.http.contract.problems import error_of, problem, status_of


def test_every_error_has_a_status_and_comes_back_as_itself() -> None:
    for kind in errors.every_error():
        assert 400 <= status_of(kind) <= 507
    original = errors.QueueHeld(queue="q", hold="full", verb="accept", level="q")
    status, text = problem(original)
    assert status == 409
    back = error_of(json.loads(text))
    assert (type(back), str(back), back.advice) == (errors.QueueHeld, str(original), original.advice)


def test_a_problem_that_we_do_not_know_is_told_in_the_words_of_the_server() -> None:
    for document in ({"code": "odd", "detail": "strange"}, {"code": "queue-held", "facts": {}}, {}):
        told = error_of(document)
        assert isinstance(told, errors.ServerFailed)
        assert told.happened == "unknown"
    assert "strange" in str(error_of({"code": "odd", "detail": "strange"}))
