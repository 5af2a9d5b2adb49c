"""Bits that flip in the file of a room: what is damaged is set aside and named, the rest goes on in its order."""

from __future__ import annotations

import random
import shutil
import traceback
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import pytest
from tests.faults.here import evaluate_here
from tests.faults.station_workload import FORM
from tests.faults.workload import FLOW, PROGRAM

import postroom
from postroom.diagnosis.examination import examine
from postroom.diagnosis.finding import Case
from postroom.errors import MessageCorrupt, PostroomError, StoreCorrupt
from postroom.model.types import Field, MessageType
from postroom.room import Postroom
from postroom.store.proof.audit import check_lines
from postroom.store.sqlite.store import SqliteStore

SENT = [f"message {number} é " + "x" * (number * 7 % 300) for number in range(40)]


def fill(room: Postroom, folder: Path) -> None:
    """Something in the tables of every capability; what is followed is in ``q``."""
    room.definitions.define_type(MessageType("Note", (Field("Text"),)))
    room.queues.create("q", password="pw")
    room.queues.create("drop", keep_processed=False)
    for number, body in enumerate(SENT):
        room.send("q", body, properties={"n": number}, idempotency_key=f"key {number}" if number % 9 == 0 else None)
        room.send("drop", {"Text": body}, type="Note")
    for name, text in (("program.demaq", PROGRAM), ("trade.flow", FLOW), ("note.form", FORM)):
        (folder / name).write_text(text)
        room.load(folder / name)
    for number in range(3):
        room.send("requests", f"<request><id>r{number}</id><n>{number}</n></request>", format="xml")
        room.publish("In", {"n": number})
    room.client("desk").subscribe("In", "[n: any]", durable=True)
    room.stations.add("ann", "pw", "control")
    room.stations.add("bob", "pw", "control")
    ann = room.stations._station("ann")
    key = ann.create("NOTE", To="bob", Number=1, Text="first")
    ann.modify(key, Text="second")
    ann.ship(key, "bob")
    ann.create("NOTE", To="x", Number=2, Text="third")
    room.sphere("trip").send("drop", "book", compensation="cancel")
    evaluate_here(room).run_until_idle(step_messages=2)
    for _ in range(8):
        assert room.receive("q").message is not None
        assert room.receive("drop").message is not None


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rot")
    with postroom.open(folder / "original.db") as room:
        fill(room, folder)
        keys = [message.key for message in room.queues.info("q")]
        assert room.journal.verify().differences == ()
    (folder / "keys").write_text(" ".join(keys))
    return folder / "original.db"


class Look:
    """What someone comes to know of a room of which a bit has flipped."""

    def __init__(self, file: Path, keys: list[str]) -> None:
        self.got: list[str] = []
        self.said: list[str] = []  # errors, each typed
        self.named = False  # whether verify told of something
        self.opened = False
        with self._told(), postroom.open(file, create=False) as room:
            self.opened = True
            with self._told():
                self.named = bool(room.journal.verify().differences)
            self._look(room, keys)
            self._drain(room)
            if self.said:
                with self._told():
                    room.journal.mend()
                self._drain(room)

    def _told(self) -> Any:
        return _Told(self.said)

    def _look(self, room: Postroom, keys: list[str]) -> None:
        with self._told():
            for message in [*room.queues.info("q"), *room.queues.history("q"), *room.queues.info("drop")]:
                message.as_dict()
        with self._told():
            room.queues.accept()
        with self._told():
            [event.as_dict() for event in room.journal.last(30)]
        for key in keys[::10]:
            with self._told():
                [event.as_dict() for event in room.trace(key)]
                room.show(key).as_dict()
        with self._told():
            program = partial(room.store.read, room._parts.programs.program)
            examine(Case(room.store, room._parts.network, program, room.operations.lags, deep=True))
        with self._told():
            evaluate_here(room).run_until_idle(step_messages=2)

    def _drain(self, room: Postroom) -> None:
        for _ in range(2 * len(SENT)):
            told = len(self.said)
            with self._told():
                message = room.receive("q").message
                if message is None:
                    return
                self.got.append(message.body)
            if len(self.said) > told and "message-corrupt" not in self.said[-1]:
                return


class _Told:
    """Lets typed errors pass, and notes them; any other is a failure."""

    def __init__(self, said: list[str]) -> None:
        self._said = said

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        if isinstance(error, PostroomError):
            self._said.append(f"{error.code}: {error}")
            return True
        return False


def copied(original: Path, folder: Path) -> Path:
    for suffix in ("", "-wal", "-shm"):
        Path(f"{folder / 'copy.db'}{suffix}").unlink(missing_ok=True)
    return Path(shutil.copy(original, folder / "copy.db"))


def flip(file: Path, position: int, bit: int) -> None:
    with file.open("r+b") as stream:
        stream.seek(position)
        (byte,) = stream.read(1)
        stream.seek(position)
        stream.write(bytes([byte ^ 1 << bit]))


def check(look: Look) -> None:
    expected = SENT[8:]
    assert set(look.got) <= set(expected), "a changed message was delivered"
    assert len(set(look.got)) == len(look.got), "a message was delivered twice"
    assert [body for body in expected if body in set(look.got)] == look.got, "out of order"
    if look.got != expected:
        assert look.said, "messages are missing, and nobody was told"
        assert look.named or not look.opened, f"messages are missing, and verify does not name it: {look.said}"


def places(original: Path, seed: int, many: int) -> Iterator[tuple[int, int]]:
    """Every bit in turn, anywhere in the file."""
    chance = random.Random(seed)
    size = original.stat().st_size
    for number in range(many):
        yield chance.randrange(size), number % 8


#: Together 10,000 in parts that can be run beside each other.
PARTS = [(24, 24), *(pytest.param(seed, 1_000, marks=pytest.mark.slow) for seed in range(10))]


@pytest.mark.parametrize(("seed", "many"), PARTS)
def test_a_bit_that_flips_anywhere_delivers_nothing_false_and_loses_nothing_silently(
    original: Path, tmp_path: Path, seed: int, many: int
) -> None:
    keys = (original.parent / "keys").read_text().split()
    wrong = []
    for position, bit in places(original, seed, many):
        copy = copied(original, tmp_path)
        flip(copy, position, bit)
        try:
            check(Look(copy, keys))
        except Exception as error:
            (*_, place) = traceback.extract_tb(error.__traceback__)
            wrong.append(f"bit {bit} of byte {position}: {error!r} at {place.filename}:{place.lineno}")
    assert wrong == []


# --- where the flips were found that nobody noticed ---


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Postroom]:
    with postroom.open(tmp_path / "room.db") as opened:
        opened.queues.create("q")
        opened.send_many("q", ["one", "two", "three"])
        yield opened


def sql(room: Postroom, *statements: str) -> None:
    assert isinstance(room.store, SqliteStore)
    for statement in statements:
        room.store.session.connection.execute(statement)


def received(room: Postroom, before: list[str] | None = None) -> list[str]:
    """All that there is, behind what was received before."""
    found: list[str] = [] if before is None else before
    while (message := room.receive("q").message) is not None:
        found.append(message.body)
    return found


@pytest.mark.parametrize("column", ["body", "properties", "type", "format"])
def test_a_message_whose_text_is_none_any_more_is_set_aside_and_the_rest_goes_on(room: Postroom, column: str) -> None:
    keys = [message.key for message in room.queues.info("q")]
    sql(room, f"UPDATE messages SET {column} = CAST(x'61ff' AS TEXT) WHERE body = 'two'")
    assert [message.corrupt for message in room.queues.info("q")] == [False, True, False]
    assert [each.what for each in room.journal.verify().differences] == [f"message {keys[1]}"]
    findings = room.operations.diagnose(deep=True)
    assert any(keys[1] in finding.what for finding in findings)
    first = room.receive("q").message
    assert first is not None
    with pytest.raises(MessageCorrupt, match=keys[1]):
        room.receive("q")
    assert (first.body, received(room)) == ("one", ["three"])
    assert [event.verb for event in room.trace(keys[1])] == ["put", "set-aside"]
    assert room.show(keys[1]).corrupt


def test_the_engine_goes_on_behind_a_message_whose_text_is_none_any_more(room: Postroom, tmp_path: Path) -> None:
    program = tmp_path / "p.demaq"
    program.write_text(
        "create queue in kind basic mode persistent\ncreate queue out kind basic mode persistent\n"
        "create rule r for in if (//a) then do enqueue <b>{string(//a)}</b> into out"
    )
    room.load(program)
    for number in range(3):
        room.send("in", f"<a>{number}</a>", format="xml")
    sql(room, "UPDATE messages SET body = CAST(x'3c613eff3c2f613e' AS TEXT) WHERE body = '<a>1</a>'")
    evaluate_here(room).run_until_idle()
    assert [message.body for message in room.queues.info("out")] == ["<b>0</b>", "<b>2</b>"]
    assert room.queues.accept("in").queues[0].unprocessed == 0


@pytest.mark.parametrize("column", ["verb", "actor", "detail", "at", "message", "prior", "source", "target"])
def test_a_changed_line_of_the_journal_is_noticed(room: Postroom, column: str) -> None:
    assert room.receive("q")
    value = "CAST(x'ff' AS TEXT)" if column in ("verb", "actor", "detail") else "coalesce(" + column + ", 0) + 1"
    sql(room, f"UPDATE journal SET {column} = {value} WHERE seq = 3")
    named = [each.what for each in room.journal.verify().differences]
    assert "line 3" in named
    assert [event.damaged for event in room.journal.last(10) if event.seq == 3] == [True]


def test_the_name_and_the_time_of_a_line_are_under_its_digest(url: str) -> None:
    """On both stores, whoever wrote the line: one by one, many at once, or a step."""
    with postroom.open(url) as room:
        room.queues.create("q")
        room.send("q", "a")
        room.send_many("q", ["b", "c"])
        assert room.receive("q")
        assert room.journal.verify().differences == ()
        lines = room.store.read(lambda tx: list(tx.journal.lines()))
        assert all(line.digest is not None for line in lines)
        for line in lines:
            for changed in (line._replace(actor="nobody"), line._replace(at=line.at + 1), line._replace(detail="{}")):
                (broken,) = check_lines([changed]).broken
                assert broken.line == line.seq
        assert check_lines(lines, gapless=room.store.read(lambda tx: tx.journal.gapless())).covered == len(lines)


def test_a_line_that_no_message_needs_cannot_be_taken_out(room: Postroom) -> None:
    room.queues.set_password("q", password="pw")
    sql(room, "DELETE FROM journal WHERE verb = 'put' AND seq = 2")
    assert any("the line before it has the number 1" in str(each.journal) for each in room.journal.verify().differences)


def test_a_digest_that_was_taken_away_is_noticed_and_old_lines_are_counted(room: Postroom) -> None:
    sql(room, "UPDATE journal SET digest = NULL WHERE seq = 2")
    assert [each.what for each in room.journal.verify().differences] == ["line 2"]
    sql(room, "UPDATE journal SET digest = NULL")
    found = room.journal.verify()
    assert (found.differences, found.uncovered) == ((), found.lines)


def test_a_changed_definition_is_named_and_not_used(room: Postroom) -> None:
    room.definitions.define_type(MessageType("Note", (Field("Text"),)))
    sql(room, "UPDATE definitions SET body = replace(body, 'Text', 'Texu')")
    with pytest.raises(StoreCorrupt, match="'Note' does not match its hash"):
        room.send("q", {"Text": "x"}, type="Note")
    assert any("'Note'" in each.what for each in room.journal.verify().differences)
    assert received(room) == ["one", "two", "three"]


# An index is damaged for SQLite alone: its table is written to while the schema says that there is no index.
_INDEX = "SELECT type, name, tbl_name, rootpage, sql FROM sqlite_master WHERE name = 'messages_chain'"
_WITHOUT = "DELETE FROM sqlite_master WHERE name = 'messages_chain'"


def behind_the_index(file: Path, statement: str) -> None:
    """Change a table so that its index knows nothing of it."""
    connection = apsw.Connection(str(file))
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
    (schema,) = connection.execute(_INDEX)
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute(_WITHOUT)
    connection.close()
    connection = apsw.Connection(str(file))
    connection.execute(statement)
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute("INSERT INTO sqlite_master (type, name, tbl_name, rootpage, sql) VALUES (?, ?, ?, ?, ?)", schema)
    connection.close()


@pytest.mark.parametrize(
    ("statement", "before", "after"),
    [
        # The index leads to a message that was processed: it would be delivered again.
        ("UPDATE messages SET state = 0, processed = 5 WHERE body = 'one'", [], ["one", "two", "three"]),
        # A message that the index does not know: it would be passed over.
        ("UPDATE messages SET queue = 77 WHERE body = 'one'", [], ["one", "two", "three"]),
        ("UPDATE messages SET number = number + 1 WHERE body = 'two'", ["one"], ["two", "three"]),
    ],
)
def test_an_index_that_leads_astray_is_noticed_and_mended(
    tmp_path: Path, statement: str, before: list[str], after: list[str]
) -> None:
    file = tmp_path / "room.db"
    with postroom.open(file) as room:
        room.queues.create("q")
        room.send_many("q", ["one", "two", "three"])
    behind_the_index(file, statement)
    with postroom.open(file) as room:
        assert room.journal.verify().differences != ()
        for body in before:
            message = room.receive("q").message
            assert message is not None
            assert message.body == body
        with pytest.raises(StoreCorrupt, match="postroom mend"):
            room.receive("q")
        assert room.journal.mend().left == ()
        assert received(room) == after
        assert room.journal.verify().differences == ()


@pytest.mark.parametrize("seen", [[], ["one", "two"]], ids=["all", "the newest"])
def test_messages_that_an_index_hides_from_all_counts_are_no_empty_queue(tmp_path: Path, seen: list[str]) -> None:
    """Of the newest messages of a queue nothing else knows: not even how many there are."""
    file = tmp_path / "room.db"
    with postroom.open(file) as room:
        room.queues.create("q")
        room.queues.create("other")
        room.send_many("q", [*seen, "hidden", "hidden too"])
        room.send("other", "x")
    connection = apsw.Connection(str(file))
    connection.execute("UPDATE messages SET queue = queue + 77 WHERE body LIKE 'hidden%'")
    connection.close()
    behind_the_index(file, "UPDATE messages SET queue = queue - 77 WHERE queue > 77")
    hides = r"an index of q does not lead to message .* postroom mend"
    with postroom.open(file) as room:
        with pytest.raises(StoreCorrupt, match=hides):
            list(room.queues.info("q"))
        found: list[str] = []
        with pytest.raises(StoreCorrupt, match=hides):
            received(room, found)
        assert found == seen
        with pytest.raises(StoreCorrupt, match=hides):
            room.queues.accept("q")
        with pytest.raises(StoreCorrupt, match=hides):
            room.queues.accept()
        assert room.queues.accept("other").queues[0].unprocessed == 1
        assert room.journal.verify().differences != ()
        assert room.journal.mend().left == ()
        assert received(room) == ["hidden", "hidden too"]
        assert [each.unprocessed for each in room.queues.accept().queues] == [0, 1]
        assert room.journal.verify().differences == ()


@pytest.mark.parametrize(
    "change", ["departed = 3", "departed = -1", "arrived = 9", "hold = 7", "name = CAST(x'ff' AS TEXT)"]
)
def test_a_queue_whose_row_is_damaged_is_noticed_and_mended(room: Postroom, change: str) -> None:
    sql(room, f"UPDATE queues SET {change}")
    assert room.journal.verify().differences != ()
    got: list[str] = []
    with pytest.raises(PostroomError):
        received(room, got)
    assert room.journal.mend().left == ()
    assert received(room, got) == ["one", "two", "three"]


def test_mending_a_sound_room_changes_nothing(url: str) -> None:
    with postroom.open(url) as room:
        room.queues.create("q")
        room.send("q", "a")
        lines = room.journal.verify().lines
        mended = room.journal.mend()
        assert (mended.queues, mended.places, mended.set_aside, mended.left) == (0, 0, (), ())
        assert room.journal.verify().lines == lines


def test_mending_sets_aside_what_is_damaged_and_tells_it(url: str) -> None:
    with postroom.open(url) as room:
        room.queues.create("q")
        room.send_many("q", ["one", "two"])
        forged = "UPDATE messages SET body = 'forged' WHERE body = 'one'"
        room.store.transact("send", lambda tx: tx.session.run(forged))
        mended = room.journal.mend()
        assert len(mended.set_aside) == 1
        assert [event.verb for event in room.trace(mended.set_aside[0])] == ["put", "set-aside"]
        assert received(room) == ["two"]
        assert room.journal.verify().differences == ()


@pytest.mark.parametrize("word", ["seq", "version"])
def test_a_table_whose_description_is_damaged_is_named(tmp_path: Path, word: str) -> None:
    with postroom.open(tmp_path / "room.db") as room:
        room.queues.create("q")
        assert room.journal.verify().differences == ()
    data = (tmp_path / "room.db").read_bytes()
    made = data.index(b"CREATE TABLE epochs (seq")
    place = data.index(word.encode(), made) + 1
    (tmp_path / "room.db").write_bytes(data[:place] + bytes([data[place] ^ 0x80]) + data[place + 1 :])
    with postroom.open(tmp_path / "room.db") as room:
        assert "the description of table epochs is damaged" in [
            each.tables for each in room.journal.verify().differences
        ]


def test_messages_whose_keys_are_read_as_empty_are_damage(tmp_path: Path) -> None:
    with postroom.open(tmp_path / "room.db") as room:
        room.queues.create("q")
        room.send("q", "a")
    data = (tmp_path / "room.db").read_bytes()
    place = data.index(b"PRIMARY KEY", data.index(b"CREATE TABLE messages"))
    assert data[place - 2 : place - 1] == b"R"  # of INTEGER: with another letter it is a column like any other
    (tmp_path / "room.db").write_bytes(data[: place - 2] + b"S" + data[place - 1 :])
    with postroom.open(tmp_path / "room.db") as room:
        with pytest.raises(StoreCorrupt, match="messages are read without their keys"):
            [message.as_dict() for message in room.queues.info("q")]
        assert "the store is damaged" in str(room.journal.verify().differences)


def test_an_error_of_a_program_in_a_sound_room_stays_what_it_is(room: Postroom) -> None:
    def work(tx: object) -> None:
        raise KeyError("a mistake")

    with pytest.raises(KeyError, match="a mistake"):
        room.store.read(work)
