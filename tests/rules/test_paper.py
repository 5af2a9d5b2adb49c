"""The 2007 paper, statement by statement: what it prints loads, or is refused with the right word; and then holds.

The listings are those of sections 2 and 3; D-numbers are those of our list of the paper's behaviours. The whole
application is in tests/examples/test_procurement.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain, permutations
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import postroom
from postroom import Message, Postroom
from postroom.errors import CollectionUnknown, EntryRefused, ProgramInvalid
from postroom.rules.language.reader import parse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SUPPLIER = """create queue supplier kind outgoingGateway mode persistent
interface supplier.wsdl port CapacityRequestPort
using WS-ReliableMessaging policy wsrmopol.xml
using WS-Security policy wssecpol.xml
"""
POLICY = """<wsp:Policy xmlns:wsp="http://www.w3.org/ns/ws-policy"><{word} xmlns="{space}"/></wsp:Policy>"""
GATEWAYS = ("supplier", "customer", "ruleErrors", "site", "out")
QUEUES = "".join(
    f"create queue {name} kind basic mode persistent\n"
    for name in "crm finance legal customer invoices postalService order confirmation".split()
)
SURROUNDINGS = f"""create queue supplier kind outgoingGateway mode persistent
{QUEUES}create queue echoQueue kind echo mode persistent
create collection crm
"""
ORDER_ID = """create property orderId as xs:string fixed
queue order value //orderId
queue confirmation value /confirmedOrder/ID
"""
FIG_5 = """create rule newOfferRequest for crm
if (//offerRequest) then
  let $customerInfo :=
    <requestCustomerInfo>
      {//requestID} {//customerID}
    </requestCustomerInfo>
  let $exportRestrictionInfo := ...
  let $plantCapacityInfo := ...
  return do enqueue $customerInfo into finance,
    do enqueue $exportRestrictionsInfo into legal,
    do enqueue $plantCapacityInfo into supplier
    with Sender value "http://ws.chem.invalid/"
"""
FIG_5_FILLED = FIG_5.replace("...", "<info>{//items}</info>")
FIG_6 = """create rule checkCreditRating for finance
if (//requestCustomerInfo) then
  let $result :=
    <customerInfoResult> {//requestID} {//customerID}
    {let $invoices := qs:queue("invoices")}
    return
      if ($invoices[//customerID = qs:message()/customerID])
      then
        <refuse/> (:unpaid bills!:)
      else
        <accept/>}
    </customerInfoResult>
  return do enqueue $result into crm
"""
FIG_7 = """create property requestID as xs:string fixed
queue crm, customer value //requestID

create slicing requestMsgs on requestID

create rule joinOrder for requestMsgs
if(qs:slice()[/customerInfoResult] and
  qs:slice()[/restrictionsResult] and
  qs:slice()[/capacityResult]) then
  if(qs:slice()[/customerInfoResult/accept] and
    not (qs:slice()[/restrictionsResult/restrictedItem])
    and qs:slice()[/capacityResult/accept]) then
    let $request := qs:queue("crm")/offerRequest
    let $items:= $request[//requestID = qs:slicekey()]/items
    let $pricelist := collection("crm")/[pricelist]
    let $offer := ...
    return do enqueue $offer into customer
  else (:problems:)
    do enqueue <refusal>{//requestID}</refusal>
      into customer
"""
FIG_7_FILLED = FIG_7.replace("...", "<offer>{$items, $pricelist}</offer>")
FIG_8 = """create rule cleanupRequest for requestMsgs
  if (qs:slice()/offer or qs:slice()/refusal) then
    do reset
"""
FIG_9 = """create property messageRequestID as xs:string fixed
  queue invoices, finance value //requestID

create slicing invoiceRetention on messageRequestID

create rule resetPaidInvoices for invoiceRetention
if (qs:slice()/timeoutNotification
    and qs:slice()/paymentConfirmation) then
  do reset

create rule checkPayment for finance
if (//timeoutNotification) then
  let $mRID := qs:message()/requestID
  let $payments := qs:queue()[paymentConfirmation]
  return
  if (not($payments[//requestID = mRID])) then
    let $invoice:=qs:queue("invoices")[//requestID = mRID]
    let $reminder := (:access initial invoice:) ...
    return do enqueue $reminder into customer
  else ()
"""
FIG_10 = """create queue crmErrors kind basic mode persistent
create property orderID as xs:integer
  queue crm value //customerOrder/orderID
create slicing retainOrders on orderID

create rule confirmOrder for crm errorqueue crmErrors
if(//customerOrder) then (:send confirmation:)
let $confirmation := <confirmation>
    { //orderID } (:additional details:)
  </confirmation>
return do enqueue $confirmation into customer

create rule deadLink for crmErrors
if (/error/disconnectedTransport) then
(:send confirmation via snail mail:)
let $orders := qs:queue("crm")//customerOrders
let $initialOrderID := /error/initialMessage//orderID
let $address := $orders[orderID=$initialOrderID]/address
let $request := <sendMessage>{$address}
  { //initialMessage } </sendMessage>
return do enqueue $requestMail into postalService
"""
PREFIXED = """create queue chem:orders kind basic mode persistent
create property chem:id as xs:string queue chem:orders value //id
create slicing chem:byId on chem:id
create collection chem:prices
create rule chem:again for chem:byId
if (qs:slice()[2] and collection("chem:prices")) then
  do enqueue <a>{qs:property("chem:id")}</a> into chem:orders with chem:id value "1"
"""

#: What loads, under the number of its behaviour.
LOADS = {
    "D-1 names with a prefix": PREFIXED,
    "D-2 a basic queue": "create queue b kind basic mode persistent",
    "D-2 transient": "create queue b kind basic mode transient",
    "D-2 an incoming gateway": "create queue b kind incomingGateway mode persistent",
    "D-4 a priority": "create queue b kind basic mode persistent priority 10",
    "D-12 the echo queue": "",
    "D-19 isVIPorder": "create property isVIPorder as xs:boolean inherited\n"
    "queue crm, finance, legal, customer value false",
    "D-20 orderId": ORDER_ID,
    "D-24 the slicing, its property as it is spelled": ORDER_ID + "create slicing orders on orderId",
    "Fig. 5 repaired": FIG_5_FILLED.replace("$exportRestrictionInfo", "$exportRestrictionsInfo"),
    "Fig. 6 repaired": FIG_6.replace('("invoices")}', '("invoices")'),
    # To XQuery 3.1 the slip /[pricelist] is an array of each document's price list.
    "Fig. 7 filled": FIG_7_FILLED,
    "Fig. 8": FIG_7_FILLED + FIG_8,
    # The slip mRID is the path to an element of that name, so nothing is wrong with it before it runs.
    "Fig. 9 filled": FIG_9.replace("...", "<reminder>{$invoice}</reminder>"),
    "Fig. 10 repaired": FIG_10.replace("$requestMail", "$request"),
}
#: What is refused: the statement, the place behind the surroundings, and the words.
REFUSED = {
    "D-8": (SUPPLIER.replace("supplier", "s2", 1).replace("persistent", "transient"), 1, "needs mode persistent"),
    "D-2 kind": ("create queue b kind round mode persistent", 1, "not 'round'"),
    "D-24 as printed": (ORDER_ID + "create slicing orders on orderID", 4, "no property orderID; did you mean orderId?"),
    "D-21": (
        ORDER_ID + 'create rule r for crm if (//a) then do enqueue <a/> into order with orderId value "1"',
        4,
        "orderId is fixed: it is computed and cannot be set",
    ),
    "D-36": ("create rule r for crmm if (//a) then do reset", 1, "no queue or slicing crmm; did you mean crm?"),
    "D-37 no conditional": ("create rule r for crm do enqueue <a/> into legal", 1, "a body is one conditional"),
    "D-37 no action": ("create rule r for crm if (//a) then <a/>", 1, "at least one do enqueue or do reset"),
    "D-46": ("create rule r for crm if (//a) then do enqueue <a/> into legall", 1, "did you mean legal?"),
    "D-52 slice": ("create rule r for crm if (qs:slice()) then do enqueue <a/> into legal", 1, "rules on slicings"),
    "D-52 key": ("create rule r for crm if (qs:slicekey()) then do enqueue <a/> into legal", 1, "rules on slicings"),
    "D-54": ("create rule r for crm if (//a) then do reset", 1, "say which slice"),
    "D-59": ('create rule r for crm if (doc("x")) then do enqueue <a/> into legal', 1, "reaches outside of the room"),
    "D-61 type": ("create rule r for crm if (1 + <a/> eq xs:date(2)) then do enqueue <a/> into legal", 1, "rule r"),
    "D-61 syntax": ("create rule r for crm if (//a[) then do enqueue <a/> into legal", 1, "[syntax]"),
    "Fig. 5 as printed": (FIG_5, 7, "[syntax]"),
    "Fig. 5 filled": (FIG_5_FILLED, 10, "$exportRestrictionsInfo"),
    "Fig. 6 as printed": (FIG_6, 11, "}"),
    "Fig. 7 as printed": (FIG_7, 16, "[syntax]"),
    "Fig. 9 as printed": (FIG_9, 18, "[syntax]"),
    "Fig. 10 as printed": (FIG_10, 21, "$requestMail"),
}


@pytest.fixture
def empty(sqlite_url: str) -> Iterator[Postroom]:
    with postroom.open(sqlite_url) as room:
        there = {endpoint["gateway"] for endpoint in room.gateways.all()}
        for name in GATEWAYS:
            if name not in there:
                room.gateways.add(name, "fetched")
        yield room


@pytest.mark.parametrize("name", LOADS)
def test_what_the_paper_prints_loads(name: str, empty: Postroom, tmp_path: Path) -> None:
    program = tmp_path / "paper.demaq"
    program.write_text(SURROUNDINGS + LOADS[name])
    assert empty.load(program).version == 1


def surround(folder: Path) -> None:
    """The files that the statement names."""
    for file in (Path(__file__).parents[1] / "gateways" / "soap").glob("supplier.*"):
        (folder / file.name).write_bytes(file.read_bytes())
    reliable = POLICY.format(word="RMAssertion", space="http://docs.oasis-open.org/ws-rx/wsrmp/200702")
    security = "http://docs.oasis-open.org/ws-sx/ws-securitypolicy/200702"
    (folder / "wsrmopol.xml").write_text(reliable)
    (folder / "wssecpol.xml").write_text(POLICY.format(word="IncludeTimestamp", space=security))


def test_what_the_paper_says_of_its_supplier_is_loaded_with_its_files(empty: Postroom, tmp_path: Path) -> None:
    """D-7: the statement of section 2.1.2, word for word."""
    program = tmp_path / "paper.demaq"
    program.write_text(SUPPLIER)
    assert [each.name for each in parse(SUPPLIER, "paper.demaq")] == ["paper", "supplier"]
    with pytest.raises(ProgramInvalid, match=r"paper\.demaq:1:1: supplier: .*supplier\.wsdl"):
        empty.load(program)
    surround(tmp_path)
    with pytest.raises(
        ProgramInvalid, match=r"paper\.demaq:1:1: supplier: this room has no gateway CapacityRequestPort"
    ):
        empty.load(program)
    empty.gateways.add("CapacityRequestPort", "soap", address="https://supplier.example/")
    assert empty.load(program).version == 1


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_wrong_is_found_when_it_is_loaded_with_its_place(name: str, empty: Postroom, tmp_path: Path) -> None:
    """D-61, D-90: nothing of a wrong program is loaded."""
    text, line, words = REFUSED[name]
    surround(tmp_path)
    program = tmp_path / "paper.demaq"
    program.write_text(SURROUNDINGS + text)
    with pytest.raises(ProgramInvalid, match=re.escape(words)) as refused:
        empty.load(program)
    before = SURROUNDINGS.count("\n")
    assert f"paper.demaq:{before + line}:" in refused.value.facts["where"]
    assert empty.definitions.catalog() == []


def test_master_data_is_for_a_collection_that_was_created(empty: Postroom, tmp_path: Path) -> None:
    """D-56."""
    (tmp_path / "prices.xml").write_text("<prices/>")
    with pytest.raises(CollectionUnknown, match="create collection prices"):
        empty.definitions.load_collection("prices", tmp_path / "prices.xml")


# --- what holds when it runs -------------------------------------------------------------------------------------


class Paper:
    """A room with a program, run on Spark."""

    def __init__(self, room: Postroom, folder: Path, program: str) -> None:
        self.room = room
        self._file = folder / "paper.demaq"
        there = {endpoint["gateway"] for endpoint in room.gateways.all()}
        for name in GATEWAYS:
            if name not in there:
                room.gateways.add(name, "fetched")
        self.load(program)

    def load(self, program: str) -> None:
        self._file.write_text(program)
        self.room.load(self._file)

    def send(self, queue: str, *bodies: str) -> list[str]:
        return [self.room.send(queue, body, format="xml").key for body in bodies]

    def run(self) -> int:
        return self.room.run_until_idle(master="local[2]")

    def messages(self, queue: str) -> list[Message]:
        return sorted(
            chain(self.room.queues.history(queue), self.room.queues.info(queue)), key=lambda message: message.key
        )

    def bodies(self, queue: str) -> list[str]:
        return [message.body for message in self.messages(queue)]


def queues(*names: str) -> str:
    return "".join(f"create queue {name} kind basic mode persistent\n" for name in names)


PROPERTIES = """
create queue crm kind incomingGateway mode persistent
create queue finance kind basic mode persistent
create queue legal kind basic mode persistent
create queue customer kind outgoingGateway mode persistent
create property isVIPorder as xs:boolean inherited
queue crm, finance, legal, customer value false
create property orderId as xs:string fixed
queue crm value //orderId
queue finance value /confirmedOrder/ID
create property amount as xs:integer queue crm value //amount
create slicing conversation on connection
create slicing orders on orderId
create rule accept for crm
if (//order) then (
  do enqueue <confirmedOrder><ID>{string(//orderId)}-c</ID></confirmedOrder> into finance,
  do enqueue <check/> into legal with isVIPorder value true() with Recipient value "http://legal.invalid/",
  do enqueue
    <facts key="{qs:property("key")}" queue="{qs:property("queue")}" sender="{qs:property("sender")}"
      connection="{qs:property("connection")}" size="{qs:property("size")}" none="{qs:property("rule")}"
      created="{qs:property("created") instance of xs:dateTime}" vip="{qs:property("isVIPorder")}"
      amount="{qs:property("amount") + 1}" here="{qs:message() is /}" mine="{count(qs:queue())}"/>
    into customer)
create rule answer for finance
if (/confirmedOrder) then
  do enqueue <done rule="{qs:property("rule")}" cause="{qs:property("cause")}">{/*/ID}</done> into customer
"""


def test_a_property_comes_from_one_of_four_sources(sqlite_url: str, spark: SparkSession, tmp_path: Path) -> None:
    """D-5, D-10, D-13 to D-23, D-25, D-26, D-46 to D-51."""
    with postroom.open(sqlite_url, actor="ann") as room:
        paper = Paper(room, tmp_path, PROPERTIES)
        order = "<order><orderId>7</orderId><amount>{}</amount></order>"
        plain, important = (
            room.send("crm", order.format(amount), format="xml", properties=properties).key
            for amount, properties in ((41, {}), (1, {"isVIPorder": True}))
        )
        with pytest.raises(EntryRefused, match="orderId is fixed"):
            room.send("crm", order.format(1), format="xml", properties={"orderId": "8"})
        with pytest.raises(EntryRefused, match="FORG0001"):
            paper.send("crm", order.format("much"))
        with pytest.raises(EntryRefused, match="2 values"):
            paper.send("crm", "<order><orderId>7</orderId><orderId>8</orderId></order>")
        before = room.show(plain).properties
        assert paper.run() == 4

        sent = room.show(plain)
        assert sent.properties == before, "D-14"
        connection = sent.properties["connection"]
        assert {**before, "connection": ""} == {
            "isVIPorder": False,  # computed: the default of D-19
            "orderId": "7",
            "amount": 41,
            "sender": "ann",
            "connection": "",
        }
        first, second, *done = paper.messages("customer")
        assert first.body == (
            f'<facts key="{plain}" queue="crm" sender="ann" connection="{connection}" size="{len(sent.body)}" none="" '
            'created="true" vip="false" amount="42" here="true" mine="2"/>'
        )
        assert 'vip="true"' in second.body
        assert [first.properties["isVIPorder"], second.properties["isVIPorder"]] == [False, True], "inherited"
        assert [each.properties["isVIPorder"] for each in paper.messages("legal")] == [True, True], "explicit"
        assert paper.messages("legal")[0].properties["Recipient"] == "http://legal.invalid/"
        confirmed = paper.messages("finance")
        assert [each.properties["orderId"] for each in confirmed] == ["7-c", "7-c"], "computed for its queue"
        assert [each.body for each in done] == [
            f'<done rule="accept" cause="{cause}"><ID>7-c</ID></done>' for cause in (plain, important)
        ]
        # Slices reach over queues, a message is in several, and a connection groups what one message caused.
        assert [each.key for each in room.journal.slice("orders", "7")] == [plain, important]
        told = [each.queue for each in room.journal.slice("conversation", str(connection))]
        assert told == ["crm", "finance", "legal", "customer", "customer"]
        assert set(room.journal.why(plain).held_by) == {("orders", "7"), ("conversation", str(connection))}
        assert room.journal.locate(plain) == "crm"
        assert sum(len(paper.messages(queue)) for queue in ("crm", "finance", "legal", "customer")) == 10


SCHEDULE = (
    queues("low", "log", "twice")
    + """
create queue high kind basic mode persistent priority 10
create property k as xs:string queue twice value //k
create slicing s on k
create rule first for twice if (//k) then do enqueue <first sees="{count(qs:queue("log"))}"/> into log
create rule second for twice if (//k) then do enqueue <second sees="{count(qs:queue("log"))}"/> into log
create rule third for s
if (//k) then do enqueue <slice key="{qs:slicekey()}" has="{count(qs:slice())}"/> into log
create rule whenThree for s if (count(qs:slice()) eq 3) then do reset else ()
create rule a for low if (//x) then do enqueue <low>{string(//x)}</low> into log
create rule b for high if (//x) then do enqueue <high>{string(//x)}</high> into log
create rule c for low if (//clear) then do reset s key //clear
"""
)


def test_messages_are_processed_once_in_order_each_against_one_state(
    sqlite_url: str, spark: SparkSession, tmp_path: Path
) -> None:
    """D-4, D-6, D-27, D-28, D-30, D-39 to D-44, D-53, D-54."""
    with postroom.open(sqlite_url) as room:
        paper = Paper(room, tmp_path, SCHEDULE)
        paper.send("low", "<x>1</x>", "<x>2</x>")
        paper.send("high", "<x>3</x>")
        assert paper.run() == 3
        assert paper.bodies("log") == ["<high>3</high>", "<low>1</low>", "<low>2</low>"]
        assert paper.run() == 0, "each message is processed once"

    with postroom.open(sqlite_url) as room:  # all state is messages: another process goes on with it
        paper = Paper(room, tmp_path, SCHEDULE)
        keys = paper.send("twice", *(f"<k>{name}</k>" for name in "aabaa"))
        paper.run()
        sees = [tuple(map(int, re.findall(r'sees="(\d+)"', body))) for body in paper.bodies("log")[3:]]
        assert [count for found in sees for count in found] == [3, 3, 6, 6, 9, 9, 12, 12, 15, 15]
        slices = [body for body in paper.bodies("log") if body.startswith("<slice")]
        # The third of slice a resets it, and still counts as three: a rule does not see its own message's actions.
        # All five were in their slices before the first was processed.
        assert slices == [
            '<slice key="a" has="4"/>',
            '<slice key="a" has="4"/>',
            '<slice key="b" has="1"/>',
            '<slice key="a" has="4"/>',
            '<slice key="a" has="4"/>',
        ]
        paper.send("low", "<clear>a</clear>")
        paper.run()
        assert room.journal.slice("s", "a") == []
        assert [message.key for message in room.journal.slice("s", "b")] == [keys[2]]
        assert room.show(keys[0]).processed is not None, "a reset removes nothing"
        paper.send("twice", *(f"<k>{name}</k>" for name in "aaa"))
        paper.run()
        assert room.journal.slice("s", "a") == [], "the third message of the new lifetime has ended it"
        assert paper.bodies("log")[-1] == '<slice key="a" has="0"/>', "reset since it came"


RETENTION = (
    queues("order", "news")
    + """
create property id as xs:string queue order value //id
create slicing packaging on id
create slicing finance on id
create slicing research on id
create rule keep for packaging if (//never) then do reset
create rule packed for news if (/packed) then do reset packaging key //id
create rule paid for news if (/paid) then do reset finance key //id
create rule planned for news if (/planned) then do reset research key //id
"""
)


def test_independent_reasons_to_keep_a_message_add_up_in_any_order(
    sqlite_url: str, spark: SparkSession, tmp_path: Path
) -> None:
    """D-25, D-29, D-31 to D-35: packaging, finance and research of section 2.3.3."""
    with postroom.open(sqlite_url) as room:
        paper = Paper(room, tmp_path, RETENTION)
        ways = list(permutations(("packed", "paid", "planned")))
        keys = paper.send("order", *(f"<order><id>{number}</id></order>" for number in range(len(ways))))
        paper.run()
        for turn in range(3):
            assert [len(room.journal.why(key).held_by) for key in keys] == [3 - turn] * 6
            room.engine.sweep()
            assert len(paper.messages("order")) == 6
            assert paper.messages("news") == [], "in no slice: gone once processed"
            paper.send("news", *(f"<{way[turn]}><id>{number}</id></{way[turn]}>" for number, way in enumerate(ways)))
            paper.run()
        assert all(room.journal.why(key).removable for key in keys)
        assert len(paper.messages("order")) == 6, "nothing is removed before a sweep"
        assert room.engine.sweep() == 12
        assert paper.messages("order") == []
        assert [event.verb for event in room.trace(keys[0])] == ["put", "take"]


ERRORS = """
create module paper errorqueue moduleErrors
create system errorqueue systemErrors
create queue ruleErrors kind outgoingGateway mode persistent
create queue queueErrors kind basic mode persistent
create queue moduleErrors kind basic mode persistent
create queue systemErrors kind basic mode persistent
create queue plain kind basic mode persistent
create queue special kind basic mode persistent errorqueue queueErrors
create queue done kind basic mode persistent
create rule r1 for special errorqueue ruleErrors if (/rule) then do enqueue <n>{xs:integer(/rule)}</n> into done
create rule r2 for special if (/queue) then do enqueue <n>{1 div xs:integer(/queue)}</n> into done
create rule r3 for plain
if (/module) then (do enqueue <n/> into done, do enqueue (<a/>, <b/>) into done) else ()
create rule r4 for plain if (/two) then do enqueue <n/> into done
create rule handle for queueErrors if (/error/code = "FOAR0001") then do enqueue <n>{error()}</n> into done
create rule handleAgain for moduleErrors if (/error/queue = "queueErrors") then do enqueue <n>{error()}</n> into done
"""


def test_errors_are_messages_in_the_most_specific_error_queue(
    sqlite_url: str, spark: SparkSession, tmp_path: Path
) -> None:
    """D-38, D-60, D-62 to D-65: of the rule, the queue, the module, the system; never back into the same queue."""
    with postroom.open(sqlite_url) as room:
        paper = Paper(room, tmp_path, ERRORS)
        [of_rule] = paper.send("special", "<rule>seven</rule>")
        paper.send("special", "<queue>0</queue>")
        paper.send("plain", "<module/>", "<two/>")
        paper.run()
        told = {
            queue: [
                (found[1], found[2], found[3])
                for body in paper.bodies(queue)
                if (found := re.search("<code>(.*?)</code>.*?<rule>(.*?)</rule>.*?<queue>(.*?)</queue>", body))
            ]
            for queue in ("ruleErrors", "queueErrors", "moduleErrors", "systemErrors", "postroom-errors")
        }
        assert told == {
            "ruleErrors": [("FORG0001", "r1", "special")],
            "queueErrors": [("FOAR0001", "r2", "special")],
            # The handler of queueErrors fails: one level up. That one's handler fails, too: up again.
            "moduleErrors": [("PR0001", "r3", "plain"), ("FOER0000", "handle", "queueErrors")],
            "systemErrors": [("FOER0000", "handleAgain", "moduleErrors")],
            "postroom-errors": [],
        }
        [error] = room.queues.info("ruleErrors")
        assert error.body.startswith("<error><class>application</class><code>FORG0001</code><description>")
        assert error.body.endswith(f'<initialMessage key="{of_rule}"><rule>seven</rule></initialMessage></error>')
        assert paper.bodies("done") == ["<n/>"], "of a message with an error no action happens; of the others all do"


def test_a_gateway_stands_for_a_local_queue_without_a_change_of_rules(
    sqlite_url: str, spark: SparkSession, tmp_path: Path
) -> None:
    """D-9."""
    rules = """
    create property id as xs:string queue site value //id
    create slicing byId on id
    create rule out for here if (//id) then do enqueue <sent>{//id}</sent> into site
    create rule back for site if (/sent) then do enqueue <got n="{count(qs:queue("site"))}">{//id}</got> into there
    create rule forget for byId if (count(qs:slice()) gt 1) then do reset
    """
    ended = []
    for kind in ("basic", "outgoingGateway"):
        with postroom.open(f"{sqlite_url}.{kind}") as room:
            program = f"{queues('here', 'there')}create queue site kind {kind} mode persistent {rules}"
            paper = Paper(room, tmp_path, program)
            paper.send("here", "<id>1</id>", "<id>1</id>", "<id>2</id>")
            paper.run()
            ended.append(
                (paper.bodies("there"), len(room.journal.slice("byId", "1")), len(room.journal.slice("byId", "2")))
            )
    assert ended[0] == ended[1]
    assert ended[0][0][0] == '<got n="3"><id>1</id></got>'
