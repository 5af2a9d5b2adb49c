"""All verbs of the program interface by their bytes, without COBOL: status keys, error keys, counts, end keys."""

from __future__ import annotations

from pathlib import Path

import pytest

from postroom.errors import ArgumentInvalid
from postroom.interfaces.cobol.areas import Description, InputDescription, IoDescription, OutputDescription
from postroom.interfaces.cobol.session import CobolSession, ProgramGone
from postroom.interfaces.cobol.wire import Call, FrameInvalid, read_answer, write_call
from postroom.room import Postroom

QUEUES = """
01 INPUT-QUEUE (IN) PASSWORD IS "INKEY"
   02 SUB-QUEUE-1 (A)
   02 SUB-QUEUE-1 (B)
01 OUTPUT-QUEUE (OUT) PASSWORD IS "OUTKEY"
01 OUTPUT-QUEUE (OUT2) PASSWORD IS "OUTKEY"
01 OUTPUT-QUEUE (OUT3) PASSWORD IS "OTHER"
99
"""
SEGMENT, NO_WAIT = 1, 2


class Program:
    """A program with one CD of each kind."""

    def __init__(self, room: Postroom, **options: str) -> None:
        self.session = CobolSession(room, **options)  # type: ignore[arg-type]
        self.input = InputDescription(b" " * 87)
        self.output = OutputDescription(b"0000" * 2 + b"99" + (b"9" + b" " * 12) * 3)
        self.io = IoDescription(b" " * 33)

    def call(
        self,
        verb: str,
        cd: Description,
        a: int = 0,
        b: int = 0,
        c: int = 0,
        *fields: bytes,
    ) -> tuple[int, str, bytes]:
        frame = write_call(Call(verb, a, b, c, (bytes(cd.area), *fields)))
        result, (area, *rest) = read_answer(self.session.answer(frame[4:]))
        cd.area[:] = area
        return result, cd.text("status"), rest[0] if rest else b""

    def receive(self, *queue: str, size: int = 80, bits: int = NO_WAIT) -> tuple[int, str, str, str]:
        self.input.set_queues(queue)
        result, key, text = self.call("R", self.input, 0, bits, size)
        return result, key, text.decode(), self.input.text("end")

    def send(
        self, text: str, *destinations: str, end: str = "2", length: int | None = None, count: int | None = None
    ) -> tuple[str, str]:
        self.to(*destinations, count=count)
        self.output.write("length", len(text) if length is None else length)
        _, key, _ = self.call("S", self.output, 0, len(text), -2, text.encode(), end.encode(), b" ")
        return key, self.errors(len(destinations))

    def to(self, *destinations: str, count: int | None = None) -> None:
        self.output.write("count", len(destinations) if count is None else count)
        for place, name in enumerate(destinations):
            at = 10 + 13 * place
            self.output.area[at : at + 13] = b"9" + name.encode().ljust(12)

    def errors(self, count: int) -> str:
        return "".join(chr(self.output.area[10 + 13 * place]) for place in range(count))

    def switch(self, verb: str, what: int, key: str) -> str:
        cd = {2: self.output, 3: self.io}.get(what, self.input)
        return self.call(verb, cd, what, 0, 0, key.encode())[1]


@pytest.fixture
def it(room: Postroom, tmp_path: Path) -> Postroom:
    file = tmp_path / "queues.qdl"
    file.write_text(QUEUES)
    room.load(file)
    return room


@pytest.fixture
def program(it: Postroom) -> Program:
    return Program(it)


def test_a_receive_fills_in_the_cd(it: Postroom, program: Program) -> None:
    it.queues.create_source("TERM-1")
    it.send("IN/B", "hello", source="TERM-1")
    assert program.receive("IN") == (0, "00", "hello", "2")
    assert program.input.queues == ("IN", "B")
    assert program.input.text("source") == "TERM-1"
    assert program.input.number("length") == 5
    assert program.input.text("date").isdigit()
    assert program.receive("IN") == (1, "00", "", "2")  # no data


def test_segments_and_short_areas_have_their_end_keys(it: Postroom, program: Program) -> None:
    it.queues.send_segments("IN/A", ["ABC", "DE"], group=True)
    assert program.receive("IN", size=2, bits=SEGMENT) == (0, "00", "AB", "0")
    assert program.receive("IN", size=2, bits=SEGMENT) == (0, "00", "C", "1")
    assert program.receive("IN", "A", size=2) == (0, "00", "DE", "3")


@pytest.mark.parametrize("queue", [(), ("NOWHERE",), ("IN", "DUMMY"), ("", "A")])
def test_an_unknown_queue_is_20_for_every_verb_of_input(program: Program, queue: tuple[str, ...]) -> None:
    assert program.receive(*queue)[:2] == (0, "20")
    assert program.call("C", program.input)[1] == "20"
    assert program.switch("E", 0, "INKEY") == program.switch("D", 0, "INKEY") == "20"


def test_messages_are_counted_also_while_one_is_read(it: Postroom, program: Program) -> None:
    it.queues.send_segments("IN/A", ["ABC", "DE"])
    it.send("IN/B", "x")
    assert program.receive("IN", bits=SEGMENT)[2] == "ABC"
    program.input.set_queues(("IN",))
    assert program.call("C", program.input)[1] == "00"
    assert program.input.number("count") == 2


def test_a_send_in_portions_is_one_message(it: Postroom, program: Program) -> None:
    assert program.send("AB", "OUT", end="0") == ("00", "0")
    assert program.send("CD", "OUT", end="1") == ("00", "0")
    assert program.send("EF", "OUT", end="3") == ("00", "0")
    (message,) = it.peek("OUT")
    assert (message.body, message.properties["segments"], message.properties["end"]) == ("ABCDEF", "4,2", "EGI")


def test_every_status_of_a_send(it: Postroom, program: Program) -> None:
    assert program.send("x", "OUT", count=0) == ("30", "9")
    assert program.send("x", "OUT", count=4) == ("30", "9")
    assert program.send("x", "OUT", length=2) == ("50", "9")
    assert program.send("", "OUT", end="0") == ("60", "9")
    assert program.send("", "OUT", end="7") == ("60", "9")
    assert program.send("x", "OUT", end="7") == ("00", "0")  # what is no indicator is a 0
    assert program.call("P", program.output)[1] == "00"
    assert program.send("x", "GARBAGE", "OUT", "") == ("20", "101")
    it.queues.disable("OUT", password="OUTKEY", output_only=True)
    assert program.send("x", "OUT") == ("10", "2")
    assert program.send("x", "OUT", "GARBAGE") == ("80", "21")
    it.queues.disable("OUT2", password="OUTKEY")
    assert program.send("x", "OUT2") == ("92", "9")
    assert [message.body for message in it.peek("OUT")] == ["x"] * 3


def test_an_end_without_text_is_an_empty_message_or_ends_the_segments_before(it: Postroom, program: Program) -> None:
    program.to("OUT")
    for _ in range(2):
        assert program.call("S", program.output, 0, -1, -2, b"", b"3", b" ")[1] == "00"
    program.send("AB", "OUT", end="1")
    assert program.call("S", program.output, 0, -1, -2, b"", b"2", b" ")[1] == "00"
    assert [(m.body, m.properties.get("end")) for m in it.peek("OUT")] == [("", "EGI"), ("", "EGI"), ("AB", None)]


def test_lines_to_advance_are_kept_with_the_message(it: Postroom, program: Program) -> None:
    program.to("OUT")
    program.output.write("length", 1)
    for when, lines in ((b"A", 3), (b"B", -1), (b"A", 0)):
        program.call("S", program.output, 0, 1, lines, b"x", b"2", when)
    assert [message.properties["advancing"] for message in it.peek("OUT")] == ["A3", "BP", "A0"]


def test_purge_forgets_partial_messages_and_says_where_there_is_none(it: Postroom, program: Program) -> None:
    program.send("AB", "OUT", end="1")
    program.to("OUT", "OUT2")
    assert program.call("P", program.output)[1] == "70"
    assert program.errors(2) == "04"
    program.send("CD", "OUT")
    assert [message.body for message in it.peek("OUT")] == ["CD"]
    program.to("OUT", count=0)
    assert program.call("P", program.output)[1] == "30"


def test_queues_and_destinations_are_switched_by_their_password(it: Postroom, program: Program) -> None:
    program.input.set_queues(("IN",))
    assert [program.switch("D", 0, key) for key in ("GUESS", "", "INKEY   ", "INKEY")] == ["40", "40", "00", "15"]
    it.queues.enable("IN", password="INKEY")
    it.send("IN/A", "x")
    assert program.switch("D", 0, "INKEY") == "00"
    assert program.receive("IN")[2] == "x"  # it still releases
    program.to("OUT", "OUT2")
    assert (program.switch("D", 2, "OUTKEY"), program.errors(2)) == ("00", "00")
    assert (program.switch("D", 2, "GUESS"), program.errors(2)) == ("40", "99")
    program.to("OUT", "OUT3")
    assert (program.switch("E", 2, "OUTKEY"), program.errors(2)) == ("40", "09")
    assert it.queues.count("OUT").queues[0].hold.label == "output only"  # nothing was done
    program.to("OUT", "NOWHERE")
    assert (program.switch("D", 2, "OUTKEY"), program.errors(2)) == ("80", "51")
    program.to("OUT", count=0)
    assert program.switch("E", 2, "OUTKEY") == "30"


def test_terminals_are_switched_and_talked_with(it: Postroom, program: Program) -> None:
    it.queues.create_source("TERM-1", password="TKEY", input="IN/A", output="OUT")
    program.input.write("source", "NOBODY")
    assert program.switch("D", 1, "TKEY") == "21"
    program.input.write("source", "TERM-1")
    assert [program.switch("D", 1, key) for key in ("GUESS", "TKEY", "TKEY")] == ["40", "00", "15"]
    program.io.write("source", "TERM-1")
    assert program.switch("E", 3, "TKEY") == "00"
    it.send("IN/A", "question", source="TERM-1")
    assert program.call("R", program.io, 1, NO_WAIT, 80) == (0, "00", b"question")
    program.io.write("length", 6)
    assert program.call("S", program.io, 1, 6, -2, b"answer", b"2", b" ")[1] == "00"
    assert [message.body for message in it.peek("OUT")] == ["answer"]
    program.io.write("source", "NOBODY")
    assert program.call("R", program.io, 1, NO_WAIT, 80)[1] == "21"
    assert program.call("S", program.io, 1, 6, -2, b"answer", b"2", b" ")[1] == "21"


def test_the_terminal_of_an_io_cd_stays_whoever_sent_the_message(it: Postroom, program: Program) -> None:
    it.queues.create_source("TERM-1", password="TKEY", input="IN/A", output="OUT")
    for source in (None, "TERM-1"):
        it.send("IN/A", "question", source=source)
    program.io.write("source", "TERM-1")
    for _ in range(2):
        assert program.call("R", program.io, 1, NO_WAIT, 80) == (0, "00", b"question")
        assert program.io.text("source") == "TERM-1"


def test_an_io_cd_is_purged_and_replaces_lines(it: Postroom, program: Program) -> None:
    it.queues.create_source("TERM-1", password="TKEY", input="IN/A", output="OUT")
    program.io.write("source", "TERM-1")
    program.io.write("length", 1)
    assert program.call("S", program.io, 1, 1, -2, b"x", b"0", b" ")[1] == "00"
    assert [program.call("P", program.io, 1)[1] for _ in range(2)] == ["00", "70"]
    for lines, when in ((-2, b" "), (2, b"A")):
        assert program.call("S", program.io, 1 | 2, 1, lines, b"y", b"2", when)[1] == "00"
    assert [message.properties["advancing"] for message in it.peek("OUT")] == ["R", "A2R"]


def test_the_cd_of_initial_io_has_the_terminal_whose_queue_started_the_program(it: Postroom, program: Program) -> None:
    it.queues.create_source("OTHER", password="TKEY", output="OUT")
    it.queues.create_source("TERM-1", password="TKEY", input="IN/B", output="OUT")
    for words, expected in ((b"-arg INP_0001", "TERM-1"), (b"-arg IN/A", ""), (b"-arg OUT", ""), (b"", "")):
        program.io.write("source", "BEFORE")
        program.call("I", program.io, 1, 0, 0, words.ljust(40))
        assert program.io.text("source") == expected


def test_the_cd_of_initial_input_has_the_queue_that_started_the_program(program: Program) -> None:
    for words, expected in ((b"-arg INP_0001", ("IN", "B")), (b"-arg IN/A", ("IN", "A")), (b"", None), (b"-arg", None)):
        program.call("I", program.input, 0, 0, 0, words.ljust(40))
        assert program.input.queues == expected


def test_an_area_of_no_characters_receives_nothing(program: Program, it: Postroom) -> None:
    it.send("IN/A", "a1a2")
    assert program.receive("IN", size=0)[1] == "98"
    assert program.receive("IN", size=-1)[1] == "98"
    assert program.receive("IN")[2] == "a1a2"


def test_text_is_in_the_encoding_of_the_program(it: Postroom) -> None:
    program = Program(it, encoding="latin-1")
    it.send("IN/A", "für €")
    assert program.receive("IN")[1] == "98"
    it.receive("IN")
    it.send("IN/A", "für")
    program.input.set_queues(("IN",))
    assert program.call("R", program.input, 0, NO_WAIT, 3)[2] == b"f\xfcr"
    other = Program(it)
    other.to("OUT")
    other.output.write("length", 2)
    assert other.call("S", other.output, 0, 2, -2, b"\xff\xfe", b"2", b" ")[1] == "97"
    with pytest.raises(ArgumentInvalid):
        Program(it, encoding="nonsense")


def test_a_waiting_program_that_is_gone_waits_no_more(it: Postroom) -> None:
    session = CobolSession(it, gone=lambda: True)
    cd = InputDescription(b" " * 87)
    cd.set_queues(("IN",))
    with pytest.raises(ProgramGone):
        session.answer(write_call(Call("R", 0, 0, 80, (bytes(cd.area),)))[4:])


def test_what_is_no_call_is_refused(program: Program) -> None:
    for call in (Call("X", 0, 0, 0, ()), Call("R", 0, 0, 80, ()), Call("S", 0, 0, 0, (b"short",))):
        with pytest.raises(FrameInvalid):
            program.session.answer(write_call(call)[4:])


def test_a_program_that_ends_in_order_says_so(it: Postroom, program: Program) -> None:
    it.send("IN/A", "x")
    program.receive("IN")
    assert read_answer(program.session.answer(write_call(Call("Q", 0, 0, 0, ()))[4:])) == (0, [])
    program.session.close(orderly=program.session.ended)
    assert it.count("IN/A").queues[0].unprocessed == 0
