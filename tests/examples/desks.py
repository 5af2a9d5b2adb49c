"""Three desks at work, each with what must come of it. Run as a program, they have a Spark of their own.

python tests/examples/desks.py ROOM MASTER
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import postroom
from postroom import Postroom, Station
from postroom.stations.procedures.evaluation import evaluate_here
from postroom.stations.procedures.inspection import Waiting

EXAMPLES = Path(__file__).parents[2] / "examples"
MEETING = "MEETING ANNOUNCEMENT"
FILES = ("office/meeting.form", "office/holiday.form", "purchasing/purchase.form", "conference/conference.form")
STATIONS = ("John", "Mary", "Oscar", "Fausto", "purchasing", "accounts", "chair", "calendar", "archive")
DAY = 86_400 * 1_000_000


@dataclass
class Clock:
    now: int = 1_767_225_600 * 1_000_000

    def __call__(self) -> int:
        return self.now


class Office:
    """A room with the procedures of the examples; without a master, actions are worked out in this process."""

    def __init__(self, url: str, master: str | None = None) -> None:
        self.clock = Clock()
        self.room: Postroom = postroom.open(url, clock=self.clock)
        if master is None:
            self.room._parts.interpreter.evaluate = evaluate_here
        self._master = master or "local[2]"
        self.at: dict[str, Station] = {name: self.room.stations.add(name, "pw") for name in STATIONS}
        self.room.load(*(EXAMPLES / name for name in FILES))

    def run(self) -> None:
        self.room.run_until_idle(master=self._master)

    def sent(self, sender: str, to: str, type: str, **fields: object) -> str:
        """A message that someone makes and ships; ``_`` stands for a blank in the name of a field."""
        key = self.at[sender].create(type, {name.replace("_", " "): value for name, value in fields.items()})
        self.at[sender].ship(key, to)
        return key

    def waits(self, procedure: str) -> list[Waiting]:
        return self.room.stations.waiting(procedure)

    def fields(self, station: str, key: str) -> dict[str, object]:
        """What a message says that has come to a station."""
        assert self.room.journal.locate(key) == f"mailbox:{station}"
        self.at[station].get()
        return dict(self.at[station].show(key).fields)

    def nothing_failed(self) -> None:
        assert [name for name, station in self.at.items() if "errors" in station.dossiers()] == []


def holiday(office: Office) -> None:
    """Figs. 5 to 8: the announcement goes back with the response, a copy of it into the dossier missed."""
    key = office.sent("Mary", "John", MEETING, To="John", Subject="office automation", Meeting_Date="1982-08-12")
    other = office.sent("Mary", "John", MEETING, To="Oscar", Subject="not for John")
    office.run()
    said = office.fields("Mary", key)
    assert said["Response"] == "Sorry, on holiday till Aug. 30, see Oscar"
    assert (said["To"], said["From"], said["Subject"]) == ("John", "Mary", "office automation")
    (copy,) = office.at["John"].dossier("missed")
    assert copy.key != key
    assert {**copy.fields, "KEY": key} == said
    assert office.room.journal.locate(other) == "mailbox:John", "what fits no sketch is left alone"
    office.nothing_failed()


def purchase(office: Office) -> None:
    """Order, delivery note and invoice in any order; wrong invoices go back, the right one goes on with the others."""
    note = office.sent("Oscar", "purchasing", "DELIVERY NOTE", Order_No="17")
    wrong = office.sent("Oscar", "purchasing", "INVOICE", Order_No="17", Amount="13.50")
    office.sent("Oscar", "purchasing", "INVOICE", Order_No="18", Amount="12.50")
    office.run()
    given = {"Order No": "17", "Supplier": "Oscar", "Item": "paper", "Amount": "12.50"}
    order = office.at["purchasing"].create("ORDER", given)
    office.run()
    said = office.fields("Oscar", wrong)
    assert (said["Decision"], said["Reason"]) == ("returned", "the amount is not that of the order")
    assert (str(said["Amount"]), str(said["Ordered"])) == ("13.50", "12.50")
    again = office.sent("Oscar", "purchasing", "INVOICE", Order_No="17", Amount="1250")
    office.run()
    assert office.fields("Oscar", again)["Decision"] == "returned", "order and note were offered once more"
    sets = {str(each.has.get("order")): each for each in office.waits("approve")}
    assert sets[order].has == {"order": order, "note": note}
    assert sets[order].wants == {"invoice": "INVOICE with Order No = 17, Amount = 12.50"}
    right = office.sent("Oscar", "purchasing", "INVOICE", Order_No="17", Amount="12.5")
    office.run()
    assert [office.room.journal.locate(key) for key in (order, note, right)] == ["mailbox:accounts"] * 3
    said = office.fields("accounts", right)
    assert (said["Decision"], said["Reason"]) == ("approved", None)
    assert office.at["accounts"].show(order).fields["State"] == "delivered"
    assert [set(each.has) for each in office.waits("approve")] == [{"invoice"}], "number 18 still waits"
    office.nothing_failed()


def submitted(office: Office, title: str) -> str:
    names = {"Reviewer 1": "Oscar", "Reviewer 2": "Fausto", "Reviewer 3": "Mary"}
    key = office.at["John"].create("PAPER", {"Title": title, "State": "submitted", **names})
    office.at["John"].ship(key, "chair")
    office.run()
    return key


def reviewed(office: Office, paper: str, **verdicts: str) -> list[str]:
    """Reviews, shipped one by one in this order."""
    keys = []
    for name, verdict in verdicts.items():
        keys.append(office.sent(name, "chair", "REVIEW", Paper=paper, Reviewer=name, Verdict=verdict))
        office.run()
    return keys


def conference(office: Office) -> None:
    """Three papers: all answer, one does not answer, and one answers after it was given up."""
    paper = submitted(office, "Form procedures")
    for name in ("Oscar", "Fausto", "Mary"):
        (asked,) = [each for each in office.at[name].mail() if each.type == "REVIEW REQUEST"]
        office.at[name].get()
        assert str(office.at[name].show(asked.key).fields["Paper"]) == paper
    reviews = reviewed(office, paper, Oscar="accept", Mary="reject", Fausto="accept")
    said = office.fields("John", paper)
    assert (said["State"], said["Decision"]) == ("decided", "accepted")
    john = [each.key for each in office.at["John"].messages("REVIEW")]
    assert sorted(john) == sorted(reviews)
    reminders = office.at["calendar"].messages("REMINDER")
    assert sorted(str(each.fields["Reviewer"]) for each in reminders) == ["Fausto", "Mary", "Oscar"]

    office.clock.now += DAY
    paper = submitted(office, "No answer")
    answered = reviewed(office, paper, Oscar="reject", Fausto="reject")
    (partial,) = [each for each in office.waits("decide") if paper in each.has.values()]
    assert set(partial.has.values()) == {paper, *answered}
    assert partial.wants == {"third": f"REVIEW with Paper = {paper}, Reviewer > Oscar"}
    office.clock.now += 14 * DAY
    office.run()
    assert office.fields("John", paper)["Decision"] == "rejected"
    assert counted(office, paper) == {("Fausto", "reject"), ("Mary", "no answer"), ("Oscar", "reject")}
    (late,) = reviewed(office, paper, Mary="accept")
    assert office.room.journal.locate(late) == "mailbox:archive", "it is decided"

    paper = submitted(office, "Given up too soon")
    reminder = next(
        each.key
        for each in office.at["calendar"].messages("REMINDER")
        if each.fields["Reviewer"] == "Mary" and str(each.fields["Paper"]) == paper
    )
    office.at["calendar"].ship(reminder, "chair")  # by hand: then nothing is shipped when its time has come
    office.run()
    late, *_ = reviewed(office, paper, Mary="accept", Oscar="accept")
    assert office.room.journal.locate(paper) == "chair", "two reviews of one reviewer are not reviews of two"
    reviewed(office, paper, Fausto="reject")
    assert office.fields("John", paper)["Decision"] == "undecided"
    assert counted(office, paper) == {("Fausto", "reject"), ("Mary", "no answer"), ("Oscar", "accept")}
    assert office.room.journal.locate(late) == "mailbox:archive", "of two reviews of one reviewer the older one counts"
    office.clock.now += 14 * DAY
    office.run()
    assert list(office.at["calendar"].messages()) == []
    assert office.waits("decide") == [], "what came too late is not there any more"
    office.nothing_failed()


def counted(office: Office, paper: str) -> set[tuple[object, object]]:
    """The reviews that the author has got."""
    found = office.at["John"].query("REVIEW", Paper=paper)
    return {(each.fields["Reviewer"], each.fields["Verdict"]) for each in found}


DESKS: tuple[Callable[[Office], None], ...] = (holiday, purchase, conference)


def find_functions() -> None:
    """What an operator says by PYTHONPATH and POSTROOM_FUNCTIONS."""
    folder = str(EXAMPLES / "conference")
    if folder not in sys.path:
        sys.path.append(folder)
    os.environ["POSTROOM_FUNCTIONS"] = "deciding"


if __name__ == "__main__":
    find_functions()
    office = Office(sys.argv[1], sys.argv[2])
    with office.room:
        for desk in DESKS:
            desk(office)
            print(desk.__name__, flush=True)
