"""The paper as acceptance: the procurement application of its Figs. 5 to 10, whole, on both stores."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

import pytest

import postroom
from postroom import Message, Postroom
from postroom.engine.runner import Runner
from postroom.engine.spark.executor_store import Bay
from postroom.engine.steps.effects import Arrival, Effects
from postroom.engine.steps.serial import Timeline
from postroom.engine.steps.stage import Share
from postroom.engine.steps.watching import WatchingStage
from postroom.engine.way import Way
from postroom.errors import EntryRefused, MessageGone, ProgramInvalid
from postroom.rules.evaluation.evaluate import evaluate_chunk
from postroom.rules.evaluation.sets import Base
from postroom.rules.evaluation.share import RulesShare
from postroom.rules.programs import Programs
from postroom.store.kernel.transaction import Transaction

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOLDER = Path(__file__).parents[2] / "examples" / "procurement"
DAY = 86_400 * 1_000_000
QUEUES = ("crm", "finance", "legal", "invoices", "echoQueue", "crmErrors", "supplier", "customer", "postalService")
SLICINGS = ("requestMsgs", "retainOrders", "invoiceRetention", "openErrors")


def _customers() -> ModuleType:
    spec = importlib.util.spec_from_file_location("procurement_customers", FOLDER / "customers.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


people = _customers()


@dataclass
class Clock:
    now: int = 1_767_225_600 * 1_000_000

    def __call__(self) -> int:
        return self.now


@dataclass
class Office:
    """A room with the application, and a clock that the test moves."""

    room: Postroom
    clock: Clock

    def run(self, **options: Any) -> int:
        return self.room.run_until_idle(master="local[2]", **options)

    def send(self, queue: str, *bodies: str) -> list[str]:
        return [self.room.send(queue, body, format="xml").key for body in bodies]

    def messages(self, queue: str) -> list[Message]:
        """Every message of a queue, in the order of arrival."""
        return sorted(
            chain(self.room.queues.history(queue), self.room.queues.info(queue)), key=lambda message: message.key
        )

    def bodies(self, queue: str) -> list[str]:
        return [message.body for message in self.messages(queue)]

    def held(self, key: str) -> set[tuple[str, str]]:
        return set(self.room.journal.why(key).held_by)

    def sweep(self) -> dict[str, int]:
        """What is left in each queue that is not empty."""
        self.room.engine.sweep()
        return {queue: len(found) for queue in QUEUES if (found := self.messages(queue))}


def opened(url: str | Path, program: Path = FOLDER / "procurement.demaq") -> Office:
    clock = Clock()
    room = postroom.open(url, clock=clock)
    for partner in ("supplier", "customer", "postalService"):
        room.gateways.add(partner, "fetched")
    room.load(program)
    room.definitions.load_collection("crm", FOLDER / "pricelist.xml")
    return Office(room, clock)


@pytest.fixture
def office(url: str, spark: SparkSession) -> Iterator[Office]:
    made = opened(url)
    with made.room:
        yield made


ITEMS = [("acetone", 10), ("xylene", 2)]
OFFER = (
    '<offer><requestID>r1</requestID><item name="acetone" quantity="10" price="2.40"/>'
    '<item name="xylene" quantity="2" price="2.95"/></offer>'
)


def test_an_offer_is_made_once_and_the_request_may_go(office: Office) -> None:
    """Figs. 5 to 8: fork, checks, join, reset; prices from a collection. D-47, D-55 to D-57."""
    [key] = office.send("crm", people.offer_request("r1", "c1", ITEMS))
    assert office.held(key) == {("requestMsgs", "r1")}
    assert [message.key for message in office.room.journal.slice("requestMsgs", "r1")] == [key]
    assert not office.room.journal.why(key).removable

    assert office.run() == 8  # the request, three questions, three answers, the offer
    assert office.bodies("customer") == [OFFER]
    [offer] = office.messages("customer")
    assert offer.properties == {"requestID": "r1", "rule": "joinOrder"}
    [question] = office.messages("supplier")
    assert question.properties["Sender"] == "http://ws.chem.invalid/"
    assert question.cause == key

    assert office.room.journal.slice("requestMsgs", "r1") == []
    assert office.room.journal.why(key).as_dict() == {"key": key, "held_by": [], "removable": True}
    assert office.room.show(key).body.startswith("<offerRequest>"), "a reset removes nothing"
    assert office.sweep() == {}
    assert [event.verb for event in office.room.trace(key)] == ["put", "take"]
    with pytest.raises(MessageGone):
        office.room.journal.why(key)


def test_a_refusal_names_its_reason(office: Office) -> None:
    """Unpaid bills, a restricted item, no capacity; and all three at once."""
    bill = "<invoice><requestID>r0</requestID><customerID>{}</customerID><orderID>1</orderID><total>5</total></invoice>"
    office.send("invoices", bill.format("c1"), bill.format("c4"))
    everything = [("phosgene", 1), ("ethanol", 5_000)]
    office.send(
        "crm",
        people.offer_request("r1", "c1", ITEMS),
        people.offer_request("r2", "c2", everything[:1]),
        people.offer_request("r3", "c3", everything[1:]),
        people.offer_request("r4", "c4", everything),
    )
    office.run()
    assert sorted(office.bodies("customer")) == [
        "<refusal><requestID>r1</requestID><unpaidBills/></refusal>",
        '<refusal><requestID>r2</requestID><restrictedItem name="phosgene"/></refusal>',
        "<refusal><requestID>r3</requestID><noCapacity/></refusal>",
        '<refusal><requestID>r4</requestID><unpaidBills/><restrictedItem name="phosgene"/><noCapacity/></refusal>',
    ]
    assert office.sweep() == {"invoices": 2}


def test_an_order_that_is_paid_in_time_leaves_nothing_behind(office: Office) -> None:
    """Figs. 9 and 10: confirmation, bill, payment, and a timeout that finds it paid. D-34, D-58."""
    [order] = office.send("crm", people.customer_order(17, "r1", "c1", ITEMS))
    assert office.held(order) == {("requestMsgs", "r1"), ("retainOrders", "17")}
    office.run()
    assert [body.split(">")[0] for body in office.bodies("customer")] == ["<confirmation", "<invoice"]
    [invoice] = office.messages("invoices")
    assert "<orderID>17</orderID><total>29.9</total>" in invoice.body
    assert office.held(order) == {("retainOrders", "17")}
    assert office.held(invoice.key) == {("invoiceRetention", "r1")}
    assert office.sweep() == {"crm": 1, "invoices": 1, "echoQueue": 1}

    office.clock.now += 3 * DAY
    [payment] = office.send("finance", people.payment("r1", "c1"))
    office.run()
    assert office.room.journal.why(order).removable, "paid, so the order may go"
    assert [message.key for message in office.room.journal.slice("invoiceRetention", "r1")] == [invoice.key, payment]
    assert office.sweep() == {"finance": 1, "invoices": 1, "echoQueue": 1}

    office.clock.now += 10 * DAY
    assert office.run() == 0
    office.clock.now += 2 * DAY
    assert office.run() == 2  # the echo message, and the notification in finance
    assert office.messages("customer") == []
    assert office.room.journal.slice("invoiceRetention", "r1") == []
    assert office.sweep() == {}
    assert [event.verb for event in office.room.trace(invoice.key)] == ["put", "take"]


def test_a_reminder_is_sent_when_the_time_is_over(office: Office) -> None:
    """Fig. 9 without a payment; D-12, D-58. Until it comes the customer gets no offer."""
    office.send("crm", people.customer_order(17, "r1", "c1", ITEMS))
    office.run()
    office.room.engine.sweep()
    office.clock.now += 15 * DAY
    office.run()
    assert office.bodies("customer") == ["<reminder><requestID>r1</requestID><total>29.9</total></reminder>"]
    assert [message.body.split(">")[0] for message in office.room.journal.slice("invoiceRetention", "r1")] == [
        "<invoice",
        "<timeoutNotification",
    ]
    assert office.sweep() == {"crm": 1, "finance": 1, "invoices": 1}

    office.send("crm", people.offer_request("r2", "c1", ITEMS))
    office.run()
    assert office.bodies("customer") == ["<refusal><requestID>r2</requestID><unpaidBills/></refusal>"]

    office.send("finance", people.payment("r1", "c1"))
    office.send("crm", people.offer_request("r3", "c1", ITEMS))
    office.run()
    assert office.bodies("customer")[1:] == [OFFER.replace("r1", "r3")], "paid, though the bill is not swept yet"
    assert office.sweep() == {}


def test_a_message_that_breaks_a_rule_becomes_an_error_message(office: Office) -> None:
    """D-60, D-62, D-63: the module's error queue takes it, and it stays until it is handled."""
    office.send("crm", people.offer_request("r1", "c1", [("acetone", "many")]))
    office.run()
    [question] = office.messages("supplier")
    [error] = office.messages("crmErrors")
    assert error.body == (
        "<error><class>application</class><code>FORG0001</code>"
        f"<description>{_description(error)}</description>"
        "<rule>checkCapacity</rule><place>procurement.demaq:72:19</place><queue>supplier</queue>"
        f'<initialMessage key="{question.key}">{question.body}</initialMessage></error>'
    )
    assert "many" in _description(error)
    assert error.cause == question.key
    assert error.properties["rule"] == "checkCapacity"
    assert office.room.show(question.key).processed is not None
    assert office.held(error.key) == {("openErrors", question.key)}
    # The other two answers wait in the slice for a third that does not come.
    assert len(office.room.journal.slice("requestMsgs", "r1")) == 3
    assert office.sweep() == {"crm": 3, "crmErrors": 1}

    office.send("crmErrors", f'<handled key="{question.key}"/>')
    office.run()
    assert office.sweep() == {"crm": 3}


def test_a_message_that_breaks_a_schema_is_refused_or_becomes_an_error_message(office: Office) -> None:
    """From outside nothing is stored; from a rule the error's class is message, and no other action happens."""
    with pytest.raises(EntryRefused, match="schema") as refused:
        office.send("invoices", "<invoice><total>12</total></invoice>")
    assert refused.value.facts["queue"] == "invoices"
    with pytest.raises(EntryRefused, match="FORG0001"):
        office.send("crm", people.customer_order("seventeen", "r1", "c1", ITEMS))
    assert office.messages("invoices") == office.messages("crm") == []

    [order] = office.send("crm", people.customer_order(18, "r1", "c1", [("aether", 1)]))
    office.run()
    [error] = office.messages("crmErrors")
    assert re.findall("<(class|code|rule|queue)>(.*?)<", error.body) == [
        ("class", "message"),
        ("code", "schema-invalid"),
        ("rule", "billOrder"),
        ("queue", "crm"),
    ]
    assert f'<initialMessage key="{order}"><customerOrder><orderID>18' in error.body
    assert office.messages("customer") == [], "the confirmation was an action of the same message"
    assert office.held(order) == {("requestMsgs", "r1"), ("retainOrders", "18")}


def test_a_dead_link_is_answered_by_mail(office: Office) -> None:
    """Fig. 10; D-11, D-62, D-64, D-65: the transport's error message is a message like any other."""
    office.send("crm", people.customer_order(17, "r1", "c1", ITEMS), people.customer_order(18, "r2", "c2", ITEMS))
    office.run()
    confirmation = next(message for message in office.messages("customer") if "<orderID>17<" in message.body)
    initial = f'<initialMessage key="{confirmation.key}">{confirmation.body}</initialMessage>'
    [error] = office.send(
        "crmErrors",
        "<error><class>network</class><code>unreachable</code><description>no route</description>"
        f"<queue>customer</queue><disconnectedTransport/>{initial}</error>",
    )
    office.run()
    [mail] = office.room.queues.info("postalService")
    assert mail.body == f"<sendMessage><address>c1, 1 Harbour Street</address>{initial}</sendMessage>"
    assert (mail.cause, mail.properties["rule"]) == (error, "deadLink")
    assert office.room.journal.why(error).removable
    received = office.room.receive("postalService").message
    assert received is not None
    assert received.key == mail.key
    assert "postalService" not in office.sweep(), "a message that someone received goes like any other"


# --- the same state for every size of steps ----------------------------------------------------------------------


class _HereShare(RulesShare):
    """Evaluates in this process with the worker's own code: thousands of steps of one message need no Spark jobs."""

    def evaluate(
        self, way: Way, arrivals: Sequence[Arrival], base: Base, known: Timeline, bay: Bay | None = None
    ) -> Iterator[Mapping[int, Effects]]:
        yield evaluate_chunk(self.plan, arrivals, base, known)[0]


class _HereStage(WatchingStage):
    def __init__(self) -> None:
        self._programs = Programs()

    def share(self, tx: Transaction, waiting: Collection[str] = ()) -> Share | None:
        return _HereShare(self._programs.plan(tx))


def run_here(office: Office, step_messages: int) -> None:
    runner = Runner(office.room.store, [], "test", [_HereStage()])
    runner.run(spark=lambda: cast(Any, None), until_idle=True, step_messages=step_messages)


def state(office: Office) -> dict[str, object]:
    """Everything that can be told from outside, with keys as numbers in the order of arrival."""
    keys = sorted(message.key for queue in QUEUES for message in office.messages(queue))
    number = {key: index for index, key in enumerate(keys)}

    def said(text: str) -> str:
        return re.sub(r"\d{5}\.\d{5}", lambda found: str(number.get(found[0])), text)

    found: dict[str, object] = {
        queue: [
            (said(each.body), said(str(each.properties)), each.processed is not None, number.get(each.cause or ""))
            for each in office.messages(queue)
        ]
        for queue in QUEUES
    }
    values = {str(each.properties.get(name)) for queue in QUEUES for each in office.messages(queue) for name in _KEYS}
    for slicing in SLICINGS:
        for value in values:
            held = [number[each.key] for each in office.room.journal.slice(slicing, value)]
            if held:
                found[f"{slicing} {said(value)}"] = held
    return found


_KEYS = ("requestID", "orderID", "messageRequestID", "failedMessage")


def business(office: Office, run: Any, count: int) -> dict[str, object]:
    """The whole life of so many customers."""
    some = people.customers(count, seed=7)
    office.send("crm", *(each.request for each in some))
    run(office)
    office.send("crm", *(each.order for each in some if each.order))
    run(office)
    office.send("finance", *(each.payment for each in some if each.kind == "pays"))
    run(office)
    office.clock.now += 15 * DAY
    run(office)
    office.send("finance", *(each.payment for each in some if each.kind == "late"))
    office.send("crm", *(each.request.replace("<requestID>r", "<requestID>s") for each in some[: count // 4]))
    run(office)
    assert list(office.room.queues.info("postroom-errors")) == []
    return state(office)


@dataclass
class Ended:
    state: dict[str, object]
    kept: dict[str, int]


@pytest.fixture(scope="module", params=[24, *(pytest.param(count, marks=pytest.mark.slow) for count in (60, 200))])
def customers(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(scope="module")
def one_at_a_time(tmp_path_factory: pytest.TempPathFactory, customers: int) -> Ended:
    """What so many customers lead to, message by message."""
    office = opened(tmp_path_factory.mktemp("single") / "room.db")
    with office.room:
        return Ended(business(office, lambda office: run_here(office, 1), customers), office.sweep())


def test_many_customers_end_alike_one_message_at_a_time_and_in_large_steps(
    office: Office, customers: int, one_at_a_time: Ended
) -> None:
    assert business(office, lambda office: office.run(), customers) == one_at_a_time.state
    names = {body.partition(">")[0] for body in office.bodies("customer")}
    assert names == {"<offer", "<refusal", "<confirmation", "<invoice", "<reminder"}
    errors = "".join(office.bodies("crmErrors"))
    assert "<class>application<" in errors
    assert "<class>message<" in errors
    assert office.sweep() == one_at_a_time.kept


@pytest.mark.slow
def test_some_customers_end_alike_one_message_at_a_time_on_spark(office: Office, tmp_path: Path) -> None:
    """Fewer of them: a Spark job for each message takes its time."""
    here = opened(tmp_path / "here.db")
    with here.room:
        expected = business(here, lambda office: run_here(office, 3), 30)
    assert business(office, lambda office: office.run(step_messages=1), 30) == expected


def test_without_its_guard_the_join_would_answer_each_result(sqlite_url: str, tmp_path: Path) -> None:
    """Why Fig. 7 is not taken literally: all three results are there when the first of them is looked at."""
    text = (FOLDER / "procurement.demaq").read_text()
    literal = re.sub(r"and\s+\(: repaired: the condition holds.*?:\)\s+not\(.*?\)\) then", ") then", text, flags=re.S)
    assert literal != text
    program = tmp_path / "procurement.demaq"
    program.write_text(literal)
    (tmp_path / "invoice.xsd").write_text((FOLDER / "invoice.xsd").read_text())
    office = opened(sqlite_url, program)
    with office.room:
        office.send("crm", people.offer_request("r1", "c1", ITEMS))
        run_here(office, 100)
        assert len(office.bodies("customer")) > 1


def test_a_queue_that_the_application_does_not_have_is_found_when_it_is_loaded(sqlite_url: str, tmp_path: Path) -> None:
    program = tmp_path / "procurement.demaq"
    program.write_text((FOLDER / "procurement.demaq").read_text().replace("into finance", "into finances"))
    (tmp_path / "invoice.xsd").write_text((FOLDER / "invoice.xsd").read_text())
    with pytest.raises(ProgramInvalid, match="no queue finances; did you mean finance") as refused:
        opened(sqlite_url, program)
    assert re.search(r"procurement\.demaq:\d+:\d+", str(refused.value))


def _description(error: Message) -> str:
    found = re.search("<description>(.*?)</description>", error.body)
    assert found is not None
    return found[1]
