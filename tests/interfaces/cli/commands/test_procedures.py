"""Commands on procedures, as a person and as a program sees them."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from postroom.stations.procedures.evaluation import evaluate_here
from postroom.stations.procedures.interpreter import Interpreter

from ...conftest import Run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLES = Path(__file__).parents[4] / "examples"
MEETING = "MEETING ANNOUNCEMENT"
CLERK = """\
procedure stamp at clerk
  precondition order : ORDER
    Amount: > 100
  action mark on order
    State: number(?order.Item)
  destination later on order copy 0 ship accounts after 2 minutes
"""


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Actions are worked out in this process: what is tested is what is said of them."""
    monkeypatch.setattr(Interpreter, "evaluate", staticmethod(evaluate_here))


@pytest.fixture
def desk(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A purchase desk and John on holiday, with those they write to."""
    for name in ("office/meeting.form", "office/holiday.form", "purchasing/purchase.form"):
        shutil.copy(EXAMPLES / name, tmp_path)
    monkeypatch.setenv("POSTROOM_PASSWORD", "pw")
    for name in ("John", "Mary", "Oscar", "purchasing", "accounts"):
        assert run("station", "add", name).code == 0
    assert run("load", "meeting.form", "holiday.form", "purchase.form").code == 0
    return run


def shipped(run: Run, sender: str, to: str, type: str, *fields: str) -> str:
    key: str = run("create", type, *fields, "--as", sender, "--json").json["key"]
    assert run("ship", key, to, "--as", sender).code == 0
    return key


def ordered(run: Run, number: str, amount: str) -> str:
    fields = (f"Order No={number}", "Supplier=Oscar", "Item=paper", f"Amount={amount}")
    key: str = run("create", "ORDER", *fields, "--as", "purchasing", "--json").json["key"]
    return key


def test_procedures_are_listed(run: Run, tmp_path: Path) -> None:
    assert run("queue", "create", "q").code == 0
    assert run("procedure", "list").err == "none; load some with: postroom load FILE.form\n"
    assert run("procedure", "list", "--json").json == {"status": "00", "procedures": []}
    for name in ("meeting.form", "holiday.form"):
        shutil.copy(EXAMPLES / "office" / name, tmp_path)
    loaded = run("load", "meeting.form", "holiday.form")
    assert "added: MEETING ANNOUNCEMENT, PROCEDURE ERROR, holiday\n" in loaded.out
    told = run("procedure", "list")
    assert re.fullmatch(
        r"procedure  station  state    where             version\nholiday    John     enabled  holiday.form:2:1  \d+\n",
        told.out,
    )
    assert told.err == "there is no station John yet; make it with: postroom station add John\n"
    (listed,) = run("procedure", "list", "--json").json["procedures"]
    assert list(listed) == ["name", "station", "state", "where", "version"]
    assert (listed["name"], listed["station"], listed["state"]) == ("holiday", "John", "enabled")
    assert run("station", "add", "John", stdin="j\n").code == 0
    assert run("procedure", "list").err == ""


@pytest.mark.usefixtures("here")
def test_a_procedure_is_switched_off_and_on_and_removed(desk: Run) -> None:
    assert desk("procedure", "disable", "holiday").out == "holiday is disabled\n"
    assert desk("procedure", "disable", "holiday").out == "holiday was disabled already\n"
    key = shipped(desk, "Mary", "John", MEETING, "To=John", "Subject=rooms")
    assert desk("run", "--until-idle").code == 0
    assert desk("locate", key).out == "mailbox:John\n"
    assert "disabled" in desk("procedure", "list").out
    assert desk("load", "holiday.form").code == 0
    assert "disabled" in desk("procedure", "list").out, "loading again does not switch it on"
    assert desk("procedure", "enable", "holiday", "--json").json == {
        "status": "00",
        "procedure": "holiday",
        "is_changed": True,
    }
    assert desk("procedure", "enable", "holiday").out == "holiday was enabled already\n"
    assert desk("run", "--until-idle").code == 0
    assert desk("locate", key).out == "mailbox:Mary\n"
    assert desk("procedure", "remove", "holiday").out == "removed holiday\n"
    assert desk("procedure", "remove", "object", "--json").json == {"status": "00", "procedure": "object"}
    assert [each["name"] for each in desk("procedure", "list", "--json").json["procedures"]] == ["approve"]
    for word in ("disable", "enable", "remove"):
        refused = desk("procedure", word, "aprove")
        assert refused.err.startswith("postroom: definition-unknown:")
        assert "did you mean approve?" in refused.err


@pytest.mark.usefixtures("here")
def test_waiting_says_who_waits_for_what(desk: Run) -> None:
    assert desk("waiting").err == "no working set waits\n"
    order = ordered(desk, "17", "12.50")
    assert desk("waiting").err == (
        "no working set waits\n1 message(s) were not processed yet; do so with: postroom run\n"
    )
    note = shipped(desk, "Oscar", "purchasing", "DELIVERY NOTE", "Order No=17")
    ordered(desk, "18", "1")
    assert desk("run", "--until-idle").code == 0
    told = desk("waiting", "approve")
    heading, first, second = told.out.splitlines()
    assert heading.split("  ")[0] == "procedure"
    assert re.split(" {2,}", first)[3:] == [
        f"order {order}, note {note}",
        "invoice: INVOICE with Order No = 17, Amount = 12.50",
    ]
    assert second.endswith("note: DELIVERY NOTE with Order No = 18; invoice: INVOICE with Order No = 18, Amount = 1")
    assert told.err == ""
    (oldest,) = desk("waiting", "object", "--limit", "1", "--json").json["waiting"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT.*Z", oldest.pop("since"))
    assert oldest == {
        "procedure": "object",
        "station": "purchasing",
        "has": {"order": order, "note": note},
        "wants": {"invoice": "INVOICE with Order No = 17, Amount <> 12.50"},
    }
    assert desk("waiting", "--limit", "1").err == "the oldest 1; see more with --limit\n"
    assert len(desk("waiting", "--json").json["waiting"]) == 4
    assert desk("waiting", "--limit", "0").err.startswith("postroom: argument-invalid: limit:")
    assert "did you mean approve?" in desk("waiting", "aprove").err


def test_explain_tells_what_a_procedure_became(desk: Run, tmp_path: Path) -> None:
    assert desk("explain", "holiday", "--plan").out == (
        "procedure holiday at John (holiday.form:2:1); enabled\n"
        "  precondition pre_holiday : MEETING ANNOUNCEMENT\n"
        "    To: John\n"
        "  action act_holiday on pre_holiday\n"
        '    Response: "Sorry, on holiday till Aug. 30, see Oscar"\n'
        "  destination cp0_holiday on pre_holiday copy 0 ship ?pre_holiday.From\n"
        '  destination cp1_holiday on pre_holiday copy 1 dossier "missed"\n'
        "\n"
        "joins: none\n"
        "searches:\n"
        "  when pre_holiday comes: the working set is complete\n"
        "order of actions:\n"
        '  1. ?pre_holiday.Response\' is "Sorry, on holiday till Aug. 30, see Oscar"\n'
    )
    desk("procedure", "disable", "object")
    shaped = desk("explain", "object", "--json").json
    assert (shaped["station"], shaped["state"]) == ("purchasing", "disabled")
    assert shaped["joins"] == [
        "note.Order No = order.Order No",
        "invoice.Order No = order.Order No",
        "invoice.Amount <> order.Amount",
    ]
    assert shaped["searches"][2] == (
        "when invoice comes: order by Order No, if Amount <> ?invoice.Amount; note by Order No"
    )
    assert shaped["order"][0] == "?invoice.Ordered' is ?order.Amount"
    (tmp_path / "file.form").write_text("procedure keep at accounts\n  precondition order : ORDER\n")
    desk("load", "file.form")
    assert desk("explain", "keep").out.endswith("order of actions: there are none\n")
    unknown = desk("explain", "kep").err
    assert unknown.startswith("postroom: definition-unknown: there is no rule, arc or procedure kep (postroom")
    assert "did you mean keep?" in unknown


@pytest.mark.usefixtures("here")
def test_try_tells_what_procedures_would_do(desk: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = shipped(desk, "Mary", "John", MEETING, "To=John", "Subject=rooms")
    told = desk("try", "holiday.form")
    completed, itself, copy = told.out.splitlines()
    assert completed == f"{key} in John:"
    assert itself.startswith(f'  holiday: ship Mary, {key}: {{"To":"John"')
    assert copy.startswith("  holiday: dossier missed, a new message: {")
    assert told.err == "1 working set(s) would be complete; nothing was changed\n"
    (tried,) = desk("try", "holiday.form", "--json").json["tried"]
    assert [(each["action"], each["queue"], each["acts_on"]) for each in tried["actions"]] == [
        ("ship", "Mary", key),
        ("dossier", "missed", "new"),
    ]
    assert desk("try", "holiday.form", "--since", "2999-01-01").err.startswith("0 message(s) tried")
    assert desk("locate", key).out == "mailbox:John\n"

    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "numbers_of_try.py").write_text(
        "import postroom\n@postroom.function\ndef number(item):\n    return str(int(item))\n"
    )
    (tmp_path / "clerk.form").write_text(CLERK)
    assert desk("try", "clerk.form").err.startswith("postroom: function-unknown: clerk.form:5:5:")
    monkeypatch.setenv("POSTROOM_FUNCTIONS", "numbers_of_try")
    assert desk("try", "clerk.form").err.startswith("0 message(s) tried, 0 working"), "its station is not there yet"
    assert desk("station", "add", "clerk").code == 0
    common = ("Order No=1", "Supplier=Oscar", "Amount=200")
    good = shipped(desk, "Mary", "clerk", "ORDER", *common, "Item=7")
    bad = shipped(desk, "Mary", "clerk", "ORDER", *common, "Item=seven")
    lines = desk("try", "clerk.form").out.splitlines()
    assert [lines[0], lines[2]] == [f"{good} in clerk:", f"{bad} in clerk:"]
    assert lines[1].startswith(f"  stamp: ship accounts after 120 s, {good}: {{")
    assert lines[3].startswith("  stamp: error: PP0001: the function number failed: ValueError")
    both = desk("try", "clerk.form", "holiday.form")
    assert both.err == "3 working set(s) would be complete; nothing was changed\n"


def test_a_wrong_procedure_is_refused_with_its_place(desk: Run, tmp_path: Path) -> None:
    wrong = (tmp_path / "holiday.form").read_text().replace("Response:", "From:")
    (tmp_path / "wrong.form").write_text(wrong)
    assert desk("load", "--check", "wrong.form").err == (
        "postroom: form-invalid: wrong.form:6:5: procedure holiday: field From is automatic: the system writes it "
        "[field-fixed]\n"
    )
    assert desk("try", "wrong.form").err.startswith("postroom: form-invalid: wrong.form:6:5:")


def test_procedures_stand_in_the_catalog(desk: Run) -> None:
    told = desk("catalog", "holiday").out
    assert "procedure  holiday  holiday.form:2:1" in told
    assert "text: procedure holiday at John\n  precondition pre_holiday" in told


def test_run_answers_while_john_is_away(desk: Run, spark: SparkSession) -> None:
    key = shipped(desk, "Mary", "John", MEETING, "To=John", "Subject=rooms")
    ran = desk("run", "--until-idle", "--master", "local[2]", "--json").json
    assert (ran["message_count"], ran["created_count"], ran["failures"]) == (2, 1, 0)
    assert desk("get", "--as", "Mary").out == f"{key}\n"
    assert "Sorry, on holiday" in desk("show", key).out
    (kept,) = desk("dossier", "show", "missed", "--as", "John", "--json").json["messages"]
    assert kept["fields"]["Response"] == "Sorry, on holiday till Aug. 30, see Oscar"
    assert "procedure holiday" in desk("trace", key).out
