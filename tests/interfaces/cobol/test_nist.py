"""Programs of the public COBOL-85 validation suite (module CM), unmodified, with words of our own for its X-cards."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.interfaces.cobol.conftest import start

import postroom
from postroom.interfaces.cobol import building
from postroom.interfaces.cobol.precompiler import Options, read_cards

HERE = Path(__file__).parent
SUITE = next(
    (folder for parent in HERE.parents if (folder := parent / "shared" / "nist").is_dir()), HERE / "shared" / "nist"
)
pytestmark = pytest.mark.skipif(
    not SUITE.is_dir(), reason="the NIST COBOL-85 programs are not beside the project (shared/nist)"
)
FLAT = """
01 INPUT-QUEUE (CM-IN) PASSWORD IS "INKEY"
01 OUTPUT-QUEUE (CM-OUT) PASSWORD IS "OUTKEY"
99
"""
TREE = """
01 INPUT-QUEUE (CM-IN) PASSWORD IS "INKEY"
   02 SUB-QUEUE-1 (P)
      03 SUB-QUEUE-2 (P)
         04 SUB-QUEUE-3 (P)
         04 SUB-QUEUE-3 (S)
      03 SUB-QUEUE-2 (S)
         04 SUB-QUEUE-3 (P)
   02 SUB-QUEUE-1 (S)
      03 SUB-QUEUE-2 (P)
         04 SUB-QUEUE-3 (P)
99
"""


@pytest.fixture
def url(tmp_path: Path, sqlite_url: str) -> Callable[[str], str]:
    """A room with the queues of a description."""

    def url(description: str) -> str:
        file = tmp_path / "queues.qdl"
        file.write_text(description)
        with postroom.open(sqlite_url) as room:
            room.load(file)
        return sqlite_url

    return url


def run(name: str, url: str, folder: Path, seconds: float) -> str:
    """Compile and run a program; its report."""
    made = building.built(SUITE / f"{name}.CBL", Options(cards=read_cards(HERE / "nist-cards.txt")))
    assert start(made, url, folder).wait(seconds) == 0
    return (folder / "report.txt").read_text(errors="replace")


def test_cm103m_echoes_every_message(cobc: str, url: Callable[[str], str], tmp_path: Path) -> None:
    room_url = url(FLAT)
    said = ["FIRST", "a second line, which is longer", "x" * 90, "KILL"]
    with postroom.open(room_url) as room:
        for text in said:
            room.send("CM-IN", text)
    report = run("CM103M", room_url, tmp_path, 60)
    with postroom.open(room_url) as room:
        echoes = [message.body for message in room.peek("CM-OUT")]
        assert echoes == ["FIRST", "a second line, which is longer", "x" * 72, "x" * 18, "KILL"]
        assert room.journal.verify().differences == ()
    for text in (*said[:2], "x" * 72, "KILL"):
        assert text in report


@pytest.mark.slow
def test_cm105m_receives_from_the_levels_of_a_tree(cobc: str, url: Callable[[str], str], tmp_path: Path) -> None:
    room_url = url(TREE)
    with postroom.open(room_url) as room:
        for path in ("PPP", "PPS", "PSP", "SPP"):
            for number in range(10):
                room.send(["CM-IN", *path], f"P{path} {number}")
    report = run("CM105M", room_url, tmp_path, 60)
    assert "FAIL*" not in report
    assert report.count("PASS ") == 10
    assert " NO ERRORS ENCOUNTERED" in report


@pytest.mark.slow
def test_cm101m_finds_every_status_of_an_input_queue(cobc: str, url: Callable[[str], str], tmp_path: Path) -> None:
    room_url = url(FLAT)
    with postroom.open(room_url) as room:
        for text in ("MESSAGE ONE", "MESSAGE TWO", "KILL"):
            room.send("CM-IN", text)
    report = run("CM101M", room_url, tmp_path, 120)
    assert "FAIL*" not in report
    assert report.count("PASS ") == 11
    assert " NO ERRORS ENCOUNTERED" in report
    assert "MESSAGE TWO" in report


@pytest.mark.slow
def test_cm102m_sends_and_what_was_held_arrives_in_order(cobc: str, url: Callable[[str], str], tmp_path: Path) -> None:
    room_url = url(FLAT)
    report = run("CM102M", room_url, tmp_path, 400)
    assert "FAIL*" not in report
    assert report.count("PASS ") == 11
    assert " NO ERRORS ENCOUNTERED" in report
    with postroom.open(room_url) as room:
        room.queues.enable("CM-OUT", password="OUTKEY")
        sent = [message.body for message in room.peek("CM-OUT")]
        assert not [text for text in sent if "SHOULD NOT APPEAR" in text]
        assert sent[:3] == [
            "CM102M- I AM THE FIRST MESSAGE IN QUEUE;     ",
            "THOU SHALT HAVE NO OTHER MESSAGES BEFORE ME. ",
            " ",
        ]
        resumed = sent.index("TRANSMISSION NOW RESUMED.")
        assert sent[resumed + 9] == "THERE SHOULD BE NO ABNORMAL DELAY IN RECEIVING THE NEXT MESSAGE."[:63]
        assert sent[resumed + 10] == "THIS IS THAT NEXT MESSAGE."
        assert len(sent) - resumed - 11 == 500
        assert room.journal.verify().differences == ()
