"""What definitions do, their loader must be allowed to do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from postroom.errors import PrincipalRefused, RightMissing
from postroom.room import Postroom
from postroom.room.identity import Identity, acting_with

RULES = """create queue inbox kind basic mode persistent
create queue outbox kind basic mode persistent
create rule copy for inbox if (//order) then do enqueue <copy/> into outbox
"""
GATEWAY = "create queue away kind outgoingGateway mode persistent\n"
TREE = '01 INPUT-QUEUE (CLAIMS) PASSWORD IS "CLAIMS" COMMAND LINE IS "/bin/true"\n99\n'
PLAIN_TREE = '01 INPUT-QUEUE (CLAIMS) PASSWORD IS "CLAIMS"\n99\n'
FLOW = """domain trading
space Trades : [issue: string, price: int]
space Big : [issue: string, price: int]
arc big : Trades -> Big select [price: p > 75]
"""


MEMO = """type MEMO
| To: ____________ KEY: ___________ |
| Text: _________________________ |
field To   string required
field Text string free
field KEY  key    automatic
"""
PROCEDURE = """procedure answer at Jane
  precondition asked : MEMO
    To: Jane
  action said on asked
    Text: yes
  destination back on asked copy 0 dossier answered
"""
TAKES = "counter c1 at Jane takes MEMO from secret\n"
GIVES = "counter c2 at Jane gives to mine\n"


def identity(*grants: str) -> Identity:
    return Identity("ann", frozenset((verb, object) for verb, object in (each.split() for each in grants)))


def load(room: Postroom, folder: Path, name: str, text: str, who: Identity) -> None:
    file = folder / name
    file.write_text(text)
    with room.store.acting(who.principal), acting_with(who):
        room.load(file)


ALL = ("load *", "manage inbox", "manage outbox", "receive inbox", "send outbox", "look *")


def test_a_rule_takes_and_sends_only_where_its_loader_may(room: Postroom, tmp_path: Path) -> None:
    for missing in ("manage outbox", "receive inbox", "send outbox"):
        less = identity(*(each for each in ALL if each != missing))
        with pytest.raises(RightMissing) as refused:
            load(room, tmp_path, "m.demaq", RULES, less)
        assert f"{refused.value.facts['verb']} {refused.value.facts['object']}" == missing
        assert room.definitions.catalog() == [], "it leaves nothing behind"
    load(room, tmp_path, "m.demaq", RULES, identity(*ALL))
    assert {entry.by for entry in room.definitions.catalog()} == {"ann"}


def test_command_lines_and_gateways_are_for_operators(room: Postroom, tmp_path: Path) -> None:
    many = identity("load *", "manage *", "send *", "receive *", "look *")
    room.gateways.add("away", "fetched")
    for name, text in (("t.qdl", TREE), ("g.demaq", GATEWAY)):
        with pytest.raises(RightMissing) as refused:
            load(room, tmp_path, name, text, many)
        assert refused.value.facts["verb"] == "operate"
    with pytest.raises(RightMissing):
        load(room, tmp_path, "p.qdl", PLAIN_TREE, identity("load *", "manage CLAIMS"))
    load(room, tmp_path, "p.qdl", PLAIN_TREE, many)
    with acting_with(many), pytest.raises(RightMissing):
        room.load(tmp_path / "p.qdl", change_passwords=True)  # that is the operator's
    load(room, tmp_path, "t.qdl", TREE, identity("operate *"))


QUEUE = "create queue inbox kind basic mode persistent"


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        (f"{QUEUE} errorqueue secret\n", "send secret"),
        (f"create module m errorqueue secret\n{QUEUE}\n", "send secret"),
        (f"{QUEUE}\ncreate system errorqueue secret\n", "operate *"),
    ],
)
def test_errors_go_only_where_the_loader_may_send_and_those_of_all_where_an_operator_says(
    room: Postroom, tmp_path: Path, text: str, missing: str
) -> None:
    room.queues.create("secret")
    some = ("load *", "manage inbox")
    with pytest.raises(RightMissing) as refused:
        load(room, tmp_path, "m.demaq", text, identity(*some, *(["send *"] if "operate" in missing else [])))
    assert f"{refused.value.facts['verb']} {refused.value.facts['object']}" == missing
    assert room.definitions.catalog() == []
    load(room, tmp_path, "m.demaq", text, identity(*some, missing))
    load(
        room,
        tmp_path,
        "own.demaq",
        f"{QUEUE} errorqueue postroom-errors\n".replace("inbox", "own"),
        identity("load *", "manage own"),
    )


def test_an_arc_leads_only_where_its_loader_may(room: Postroom, tmp_path: Path) -> None:
    for less in (("publish Big",), ("subscribe Trades",)):
        with pytest.raises(RightMissing):
            load(room, tmp_path, "t.flow", FLOW, identity("load *", *less))
    load(room, tmp_path, "t.flow", FLOW, identity("load *", "publish Big", "subscribe Trades"))


def test_nobody_replaces_or_removes_what_someone_else_has_loaded(room: Postroom, tmp_path: Path) -> None:
    (tmp_path / "m.demaq").write_text(RULES)
    room.load(tmp_path / "m.demaq")  # by whoever has the room
    for text in (RULES.replace("<copy/>", "<other/>"), RULES.split("create rule")[0]):
        with pytest.raises(RightMissing, match="operator"):
            load(room, tmp_path, "m.demaq", text, identity(*ALL))
    load(room, tmp_path, "m.demaq", RULES.replace("<copy/>", "<other/>"), identity("operate *"))


def counting(room: Postroom, folder: Path) -> None:
    """A station, a form and two queues: what counters stand between."""
    room.stations.add("Jane", "secret")
    (folder / "memo.form").write_text(MEMO)
    room.load(folder / "memo.form")
    for name in ("secret", "mine"):
        room.queues.create(name)


@pytest.mark.parametrize(("text", "needed"), [(TAKES, "receive secret"), (GIVES, "send mine")])
def test_a_counter_takes_and_gives_only_where_its_loader_may(
    room: Postroom, tmp_path: Path, text: str, needed: str
) -> None:
    counting(room, tmp_path)
    for missing, other in ((needed, "work Jane"), ("work Jane", needed)):
        with pytest.raises(RightMissing) as refused:
            load(room, tmp_path, "c.form", text, identity("load *", other))
        assert f"{refused.value.facts['verb']} {refused.value.facts['object']}" == missing
        assert room.stations.counters() == []
    load(room, tmp_path, "c.form", text, identity("load *", "work Jane", needed))
    assert len(room.stations.counters()) == 1


def test_nobody_switches_or_removes_what_someone_else_has_loaded(room: Postroom, tmp_path: Path) -> None:
    counting(room, tmp_path)
    room.stations.add("Bob", "secret")
    (tmp_path / "p.form").write_text(PROCEDURE + GIVES.replace("Jane", "Bob"))
    room.load(tmp_path / "p.form")
    (tmp_path / "c.demaq").write_text("create collection prices\n")
    room.load(tmp_path / "c.demaq")
    (tmp_path / "prices.xml").write_text("<price>1</price>")
    before = room.definitions.versions()
    verbs: list[Callable[[], object]] = [
        lambda: room.stations.disable_procedure("answer"),
        lambda: room.stations.enable_procedure("answer"),
        lambda: room.stations.remove_procedure("answer"),
        lambda: room.stations.remove_counter("c2"),
        lambda: room.definitions.load_collection("prices", tmp_path / "prices.xml"),
    ]
    for verb in verbs:
        with room.store.acting("ann"), acting_with(identity("load *")), pytest.raises(RightMissing, match="operator"):
            verb()
    assert room.definitions.versions() == before
    for verb in verbs:
        with room.store.acting("ann"), acting_with(identity("operate *")):
            verb()
    assert (room.stations.procedures(), room.stations.counters()) == ([], [])


def test_whoever_has_loaded_something_switches_and_removes_it(room: Postroom, tmp_path: Path) -> None:
    counting(room, tmp_path)
    mine = known(room, "load", "work Jane")
    load(room, tmp_path, "answer.form", PROCEDURE, mine)
    assert room.stations.disable_procedure("answer")  # by whoever has the room: it remains ann's
    load(room, tmp_path, "c.demaq", "create collection prices\n", mine)
    (tmp_path / "prices.xml").write_text("<price>1</price>")
    with room.store.acting("ann"), acting_with(mine):
        assert room.stations.enable_procedure("answer")
        for text in ("<price>1</price>", "<price>2</price>"):
            (tmp_path / "prices.xml").write_text(text)
            room.definitions.load_collection("prices", tmp_path / "prices.xml")
        room.stations.remove_procedure("answer")
    assert room.stations.procedures() == []


def test_loading_again_what_someone_else_has_loaded_does_not_make_it_ones_own(room: Postroom, tmp_path: Path) -> None:
    counting(room, tmp_path)
    (tmp_path / "answer.form").write_text(PROCEDURE)
    room.load(tmp_path / "answer.form")
    mine = known(room, "load", "work Jane")
    load(room, tmp_path, "answer.form", PROCEDURE, mine)
    with room.store.acting("ann"), acting_with(mine), pytest.raises(RightMissing, match="operator"):
        room.stations.remove_procedure("answer")
    room.access.withdraw("ann", "work", "Jane")
    assert [each.enabled for each in room.stations.procedures()] == [True]


def test_properties_and_slicings_are_of_queues_that_the_loader_manages(room: Postroom, tmp_path: Path) -> None:
    room.load(_written(tmp_path, "s.demaq", "create queue secret kind basic mode persistent\n"))
    text = "create property who as xs:string queue secret value //who\n"
    with pytest.raises(RightMissing) as refused:
        load(room, tmp_path, "p.demaq", text, identity("load *", "manage mine"))
    assert (refused.value.facts["verb"], refused.value.facts["object"]) == ("manage", "secret")
    load(room, tmp_path, "p.demaq", text, identity("load *", "manage secret"))
    slicing = "create slicing people on who\n"
    with pytest.raises(RightMissing, match="slicing people"):
        load(room, tmp_path, "l.demaq", slicing, identity("load *"))
    load(room, tmp_path, "l.demaq", slicing, identity("load *", "manage secret"))


def test_nobody_says_who_may_change_a_domain_that_someone_else_has_loaded(room: Postroom, tmp_path: Path) -> None:
    room.load(_written(tmp_path, "t.flow", FLOW))
    allowing = FLOW.replace("space Trades", "allow ann : addArc, deleteArc\nspace Trades")
    some = ("load *", "publish *", "subscribe *")
    with pytest.raises(RightMissing, match="domain trading"):
        load(room, tmp_path, "t.flow", allowing, identity(*some))
    load(room, tmp_path, "t.flow", FLOW, identity(*some))  # as it is
    load(room, tmp_path, "own.flow", "domain own\nallow ann : addArc\nspace Mine : [n: int]\n", identity(*some))
    load(room, tmp_path, "t.flow", allowing, identity("operate *"))


def _written(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text)
    return folder / name


# --- rights that are withdrawn later ---


def known(room: Postroom, *grants: str) -> Identity:
    """A user of the room with some grants, as a server knows it."""
    room.flows.add_principal("ann", "secret")
    for each in grants:
        room.access.grant("ann", *each.split())
    return room.access.identity("ann")


def waiting(room: Postroom, queue: str) -> list[str]:
    return [message.body for message in room.peek(queue)]


def test_a_rule_stops_when_its_loader_loses_a_right_and_goes_on_with_it(room: Postroom, tmp_path: Path) -> None:
    load(room, tmp_path, "m.demaq", RULES, known(room, *ALL))
    other = "create rule mine for inbox if (//order) then do enqueue <mine/> into outbox\n"
    (tmp_path / "other.demaq").write_text(f"create module other\n{other}")
    room.load(tmp_path / "other.demaq")  # by whoever has the room: it goes on
    room.send("inbox", "<order/>", format="xml")
    room.run_until_idle()
    assert sorted(waiting(room, "outbox")) == ["<copy/>", "<mine/>"]
    assert room.access.withdraw("ann", "send", "outbox")
    room.send("inbox", "<order>2</order>", format="xml")
    room.send("inbox", "<nothing/>", format="xml")
    room.run_until_idle()
    assert sorted(waiting(room, "outbox")) == ["<copy/>", "<mine/>", "<mine/>"]
    (told,) = waiting(room, "postroom-errors")
    assert "<code>right-missing</code>" in told
    assert "ann, who has loaded it, may not send outbox" in told
    assert "<rule>copy</rule>" in told
    assert "<order>2</order>" in told
    room.access.grant("ann", "send", "outbox")
    room.send("inbox", "<order/>", format="xml")
    room.run_until_idle()
    assert sorted(waiting(room, "outbox")) == ["<copy/>", "<copy/>", "<mine/>", "<mine/>", "<mine/>"]
    assert room.journal.verify().differences == ()


def test_no_message_of_a_step_sees_what_a_barred_rule_would_have_done(room: Postroom, tmp_path: Path) -> None:
    rules = RULES + (
        "create queue seen kind basic mode persistent\n"
        'create rule look for inbox if (//order) then do enqueue <n>{count(qs:queue("outbox"))}</n> into seen\n'
    )
    more = (*ALL, "manage seen", "send seen")
    load(room, tmp_path, "m.demaq", rules, known(room, *more))
    room.access.withdraw("ann", "send", "outbox")
    for _ in range(3):
        room.send("inbox", "<order/>", format="xml")
    room.run_until_idle()
    assert waiting(room, "seen") == ["<n>0</n>"] * 3
    assert waiting(room, "outbox") == []
    assert len(waiting(room, "postroom-errors")) == 3


def test_an_arc_stops_when_its_loader_loses_a_right(room: Postroom, tmp_path: Path) -> None:
    load(room, tmp_path, "t.flow", FLOW, known(room, "load", "publish Big", "subscribe Trades"))
    client = room.client("ann", "secret")
    client.subscribe("Big")
    room.publish("Trades", {"issue": "IBM", "price": 80})
    room.run_until_idle()
    assert client.receive().message is not None
    room.access.withdraw("ann", "publish", "Big")
    room.publish("Trades", {"issue": "IBM", "price": 90})
    room.run_until_idle()
    assert client.receive().message is None
    (told,) = waiting(room, "postroom-errors")
    assert "may not publish Big" in told
    room.access.grant("ann", "publish", "Big")
    room.publish("Trades", {"issue": "IBM", "price": 91})
    room.run_until_idle()
    assert client.receive().message is not None
    assert room.journal.verify().differences == ()


def test_a_procedure_is_disabled_when_its_loader_loses_its_station(room: Postroom, tmp_path: Path) -> None:
    room.stations.add("Jane", "secret")
    (tmp_path / "memo.form").write_text(MEMO)
    room.load(tmp_path / "memo.form")
    load(room, tmp_path, "answer.form", PROCEDURE, known(room, "load", "work Jane"))
    (kept,) = room.stations.procedures()
    assert kept.enabled
    room.access.withdraw("ann", "work", "Jane")
    (kept,) = room.stations.procedures()
    assert not kept.enabled
    with pytest.raises(PrincipalRefused, match="may not work Jane"):
        room.stations.enable_procedure("answer")
    room.access.grant("ann", "work", "Jane")
    assert room.stations.enable_procedure("answer")


def test_a_counter_stops_when_its_loader_loses_a_right_and_goes_on_with_it(room: Postroom, tmp_path: Path) -> None:
    counting(room, tmp_path)
    load(room, tmp_path, "c.form", TAKES, known(room, "load", "work Jane", "receive secret"))
    memo = '{"To": "Jane", "Text": "hello"}'
    room.send("secret", memo, format="json")
    room.run_until_idle()
    assert waiting(room, "secret") == []
    assert room.access.withdraw("ann", "receive", "secret")
    room.send("secret", memo, format="json")
    room.run_until_idle()
    assert waiting(room, "secret") == [memo]
    (counter,) = room.stations.counters()
    assert "ann, who has loaded it, may not receive secret" in counter.state
    room.access.grant("ann", "receive", "secret")
    room.run_until_idle()
    assert waiting(room, "secret") == []
    assert room.journal.verify().differences == ()


def test_what_a_removed_user_has_loaded_stops_and_an_operator_can_take_it_over(room: Postroom, tmp_path: Path) -> None:
    load(room, tmp_path, "m.demaq", RULES, known(room, *ALL))
    room.flows.remove_principal("ann")
    room.send("inbox", "<order/>", format="xml")
    room.run_until_idle()
    assert waiting(room, "outbox") == []
    assert "may not" in waiting(room, "postroom-errors")[0]
    (tmp_path / "m.demaq").write_text(RULES.replace("<copy/>", "<taken/>"))
    room.load(tmp_path / "m.demaq")
    room.send("inbox", "<order/>", format="xml")
    room.run_until_idle()
    assert waiting(room, "outbox") == ["<taken/>"]
    assert room.store.read(lambda tx: tx.bindings.all()) == []
