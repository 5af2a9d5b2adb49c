"""Answers that a transaction needs: worked out before it, each for one transaction, however many it asks for."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from postroom.room import Postroom
from postroom.rules import answers
from postroom.rules.answers import Answers
from postroom.rules.evaluation.xquery import QueryFailed
from postroom.store.kernel.base import Unprepared
from postroom.store.kernel.transaction import Transaction

NOW = "string(current-dateTime())"


def asked(room: Postroom, known: Answers, *questions: tuple[str, str]) -> list[str]:
    return room._parts.store.transact("send", lambda tx: [known.of(tx).run(*each) for each in questions])


def test_an_answer_counts_for_one_transaction(room: Postroom) -> None:
    """One that was kept said the time of an earlier message with the same text."""
    known = Answers()
    first, again = asked(room, known, (NOW, "<a/>"), (NOW, "<a/>"))
    assert first == again, "within one transaction it is the same answer"
    (later,) = asked(room, known, (NOW, "<a/>"))
    assert later > first


def test_a_query_that_fails_fails_in_the_transaction(room: Postroom) -> None:
    known = Answers()
    for _ in range(2):
        with pytest.raises(QueryFailed):
            asked(room, known, ("1 div 0", "<a/>"))


def test_several_parts_of_a_transaction_ask_and_each_question_is_worked_out_once(
    room: Postroom, monkeypatch: pytest.MonkeyPatch
) -> None:
    worked: list[str] = []
    work: Callable[..., None] = Answers._work_out

    def noted(self: Answers, question: tuple[str, str], *rest: object) -> None:
        worked.append(question[1])
        work(self, question, *rest)

    monkeypatch.setattr(Answers, "_work_out", noted)
    documents = [f"<a>{number}</a>" for number in range(12)]
    assert asked(room, Answers(), *(("string(/a)", each) for each in documents)) == [str(n) for n in range(12)]
    assert worked == documents


def test_what_a_transaction_needs_is_never_let_go(room: Postroom, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "_KEPT_CHARS", 20)
    known = Answers()

    def given_up(tx: Transaction) -> None:
        known.of(tx).run("string(/a)", "<a>left over</a>")
        raise RuntimeError("the transaction is given up")

    with pytest.raises(RuntimeError):
        room._parts.store.transact("send", given_up)
    other = answers._Question("string(/a)", "<a>of another</a>")
    known._ready[other] = "of another"
    assert asked(room, known, *(("string(/a)", f"<a>{n}</a>") for n in range(8))) == [str(n) for n in range(8)]
    assert other not in known._ready


def test_a_question_without_an_answer_ends_the_transaction(room: Postroom) -> None:
    with pytest.raises(Unprepared):
        Answers().run("1", "<a/>")
