"""Loading, printing and evolving the tree of queues."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import postroom
from postroom.errors import (
    DescriptionInvalid,
    FileUnreadable,
    LanguageUnknown,
    NameTaken,
    PasswordNeeded,
    PasswordWrong,
    QueueInUse,
    StoreBusy,
)
from postroom.model.password import hash_password
from postroom.room import Postroom

EXAMPLES = Path(__file__).parents[3] / "examples" / "queues"


@pytest.mark.parametrize(("figure", "inputs", "outputs"), [("figure-2-1", 4, 1), ("figure-2-2", 8, 2)])
def test_the_samples_of_the_text_load_and_print_to_the_same_tree(
    sqlite_url: str, tmp_path: Path, figure: str, inputs: int, outputs: int
) -> None:
    with postroom.open(sqlite_url) as room:
        loaded = room.load(EXAMPLES / f"{figure}.qdl")
        names = [f"INP_{n:04d}" for n in range(inputs)] + [f"OUT_{n:04d}" for n in range(outputs)]
        assert list(loaded.added) == names
        printed = room.definitions.hierarchy()
        copy = tmp_path / "copy.qdl"
        copy.write_text(printed)
        with postroom.open(tmp_path / "other.db") as other:
            other.load(copy)
            assert other.definitions.hierarchy() == printed
            assert other.definitions.levels() == room.definitions.levels()
            assert other.queues.accept().as_dict() == room.queues.accept().as_dict()
            password = "MASTER"
            top = room.definitions.levels()[0].name
            assert len(other.queues.disable(top, password=password).changed) == inputs


def test_loading_the_same_description_again_changes_nothing(room: Postroom, write: Callable[[str], Path]) -> None:
    file = write('01 INPUT-QUEUE (A) PASSWORD IS "PW"\n99')
    first = room.load(file)
    second = room.load(file)
    assert (first.version, second.version) == (1, 1)
    assert (second.added, second.kept, second.removed) == ((), ("INP_0000",), ())


def test_a_changed_description_keeps_messages_names_holds_and_modes(
    room: Postroom, write: Callable[[str], Path]
) -> None:
    room.load(write('01 INPUT-QUEUE (M)\n02 SUB-QUEUE-1 (A)\n02 SUB-QUEUE-1 (C) PASSWORD IS "C"\n99'))
    room.send("INP_0001", "in C")
    room.queues.disable("INP_0001", password="C")
    room.queues.set_mode("INP_0000", keep_processed=False)
    loaded = room.load(
        write('01 INPUT-QUEUE (M)\n02 SUB-QUEUE-1 (A)\n02 SUB-QUEUE-1 (B)\n02 SUB-QUEUE-1 (C) PASSWORD IS "C"\n99')
    )
    assert (loaded.added, loaded.kept, loaded.removed) == (("INP_0002",), ("INP_0000", "INP_0001"), ())
    counts = room.queues.accept("M").queues
    assert [count.queue for count in counts] == ["INP_0000", "INP_0002", "INP_0001"]  # polled as now defined
    assert counts[2].held
    assert counts[2].unprocessed == 1
    room.queues.enable("INP_0001", password="C")
    assert room.receive("M", "C").message is not None


def test_a_queue_that_disappears_must_be_empty(room: Postroom, write: Callable[[str], Path]) -> None:
    room.load(write("01 INPUT-QUEUE (A)\n01 INPUT-QUEUE (B)\n99"))
    room.send("B", "still here")
    with pytest.raises(QueueInUse, match=r"INP_0001 \(B\).*1 unprocessed.*--room other\.db"):
        room.load(write("01 INPUT-QUEUE (A)\n01 INPUT-QUEUE (NEW)\n99"))
    assert [count.queue for count in room.queues.accept().queues] == ["INP_0000", "INP_0001"]
    room.receive("B")
    loaded = room.load(write("01 INPUT-QUEUE (A)\n01 INPUT-QUEUE (NEW)\n99"))
    assert (loaded.added, loaded.removed) == (("INP_0002",), ("INP_0001",))
    assert [message.body for message in room.queues.history("INP_0001")] == ["still here"]
    back = room.load(write("01 INPUT-QUEUE (A)\n01 INPUT-QUEUE (B)\n99"))
    assert back.added == ("INP_0001",)
    assert room.queues.accept("B").queues[0].processed == 1


def test_a_password_can_be_changed_or_dropped_by_a_load(room: Postroom, write: Callable[[str], Path]) -> None:
    room.load(write('01 INPUT-QUEUE (A) PASSWORD IS "OLD"\n99'))
    loaded = room.load(write('01 INPUT-QUEUE (A) PASSWORD IS "NEW"\n99'), old="OLD")
    assert loaded.passwords == ("A",)
    assert room.queues.disable("A", password="NEW").status == "00"
    assert room.load(write("01 INPUT-QUEUE (A)\n99"), change_passwords=True).passwords == ("A",)
    assert not room.queues.has_password("A")


HASH = hash_password("OTHER")
#: Descriptions in the place of the one below, each with the level whose password it would make another.
CHANGES = {
    "another": ('01 INPUT-QUEUE (A) PASSWORD IS "NEW"\n02 SUB-QUEUE-1 (B)\n99', "A"),
    "a hash": (f'01 INPUT-QUEUE (A) PASSWORD HASH IS "{HASH}"\n02 SUB-QUEUE-1 (B)\n99', "A"),
    "none": ("01 INPUT-QUEUE (A)\n02 SUB-QUEUE-1 (B)\n99", "A"),
    "no such level": ("01 INPUT-QUEUE (Z)\n99", "A"),
    "one below what has one": (
        '01 INPUT-QUEUE (A) PASSWORD IS "OLD"\n02 SUB-QUEUE-1 (B) PASSWORD IS "MINE"\n99',
        "A B",
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_load_that_would_change_a_password_needs_the_present_one(
    room: Postroom, write: Callable[[str], Path], change: str
) -> None:
    first = '01 INPUT-QUEUE (A) PASSWORD IS "OLD"\n02 SUB-QUEUE-1 (B)\n99'
    text, level = CHANGES[change]
    room.load(write(first))
    before = room.definitions.hierarchy()
    with pytest.raises(PasswordNeeded, match=rf"the password of {level}, .*--change-passwords"):
        room.load(write(text))
    for wrong in ("NEW", "", "old", "MINE"):
        with pytest.raises(PasswordWrong, match=level):
            room.load(write(text), old=wrong)
    assert room.definitions.hierarchy() == before, "what is refused changes nothing"
    asked: list[str] = []
    loaded = room.load(write(text), old=lambda name: asked.append(name) or "OLD")  # type: ignore[func-returns-value]
    assert asked == [level]
    assert loaded.passwords == (level,)
    assert room.load(write(text)).passwords == (), "the same again changes nothing, and needs nothing"
    again = room.load(write(first), change_passwords=True)
    assert again.passwords == (() if change in ("none", "no such level") else (level,)), "there was none to change"


def test_a_password_set_meanwhile_is_not_replaced_by_a_load(room: Postroom, write: Callable[[str], Path]) -> None:
    room.load(write('01 INPUT-QUEUE (A) PASSWORD IS "OLD"\n99'))

    def meanwhile(level: str) -> str:
        room.queues.set_password("A", password="THIRD", old="OLD")
        return "OLD"

    with pytest.raises(StoreBusy, match="someone has set a password"):
        room.load(write('01 INPUT-QUEUE (A) PASSWORD IS "NEW"\n99'), old=meanwhile)
    assert room.queues.disable("A", password="THIRD").status == "00"


def test_a_password_set_by_command_survives_a_load_and_is_printed(
    room: Postroom, write: Callable[[str], Path], tmp_path: Path
) -> None:
    file = write("01 INPUT-QUEUE (A)\n99")
    room.load(file)
    room.queues.set_password("A", password="mine")
    room.load(file)
    assert room.queues.disable("A", password="mine").status == "00"
    (tmp_path / "copy.qdl").write_text(room.definitions.hierarchy())
    room.load(tmp_path / "copy.qdl")
    assert room.queues.enable("A", password="mine").status == "00"


def test_a_broken_description_loads_nothing(room: Postroom, write: Callable[[str], Path]) -> None:
    room.load(write("01 INPUT-QUEUE (A)\n99"))
    with pytest.raises(DescriptionInvalid, match=r"tree\.qdl:2:1: .*\[level-skipped\]"):
        room.load(write("01 INPUT-QUEUE (B)\n03 SUB-QUEUE-2 (C)\n99"))
    assert [count.path for count in room.queues.accept().queues] == [("A",)]


def test_a_description_and_queues_made_by_name_do_not_get_in_each_others_way(
    room: Postroom, write: Callable[[str], Path]
) -> None:
    room.queues.create("TAKEN")
    with pytest.raises(NameTaken, match="TAKEN"):
        room.load(write("01 INPUT-QUEUE (TAKEN)\n99"))
    room.load(write("01 INPUT-QUEUE (M)\n02 SUB-QUEUE-1 (A)\n99"))
    for name in ("M", "TAKEN"):
        with pytest.raises(NameTaken):
            room.queues.create(name)
    assert room.load(write("01 INPUT-QUEUE (N)\n99")).removed == ("INP_0000",)
    assert room.send("TAKEN", "still there").status == "00"


def test_several_files_of_one_load_are_one_description(room: Postroom, tmp_path: Path) -> None:
    (tmp_path / "a.qdl").write_text("01 INPUT-QUEUE (A)\n99")
    (tmp_path / "b.qdl").write_text("01 OUTPUT-QUEUE (B)\n99")
    assert room.load(tmp_path / "a.qdl", tmp_path / "b.qdl").added == ("INP_0000", "OUT_0000")


def test_files_that_cannot_be_read_are_told(room: Postroom, tmp_path: Path) -> None:
    with pytest.raises(FileUnreadable, match="No such file"):
        room.load(tmp_path / "none.qdl")
    (tmp_path / "latin.qdl").write_bytes(b"* \xe9\n99")
    with pytest.raises(FileUnreadable, match="byte 3 is not UTF-8"):
        room.load(tmp_path / "latin.qdl")
    (tmp_path / "x.toml").write_text("")
    with pytest.raises(LanguageUnknown, match=r"\.toml"):
        room.load(tmp_path / "x.toml")
    (tmp_path / "big.qdl").write_bytes(b" " * (1024 * 1024 + 1))
    with pytest.raises(FileUnreadable, match="larger"):
        room.load(tmp_path / "big.qdl")
    with pytest.raises(postroom.errors.ArgumentInvalid):
        room.load()


def test_a_load_tells_how_far_it_is(room: Postroom, write: Callable[[str], Path]) -> None:
    told: list[tuple[int, int]] = []
    room.load(
        write("01 INPUT-QUEUE (A)\n01 INPUT-QUEUE (B)\n99"), progress=lambda done, total: told.append((done, total))
    )
    assert told == [(1, 2), (2, 2)]


def test_an_empty_room_prints_no_hierarchy(room: Postroom) -> None:
    assert room.definitions.hierarchy() == ""
    assert room.definitions.levels() == []
