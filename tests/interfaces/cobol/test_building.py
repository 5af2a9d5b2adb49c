"""From COBOL and C to programs: the compiler's errors name the author's lines; the calls of the Multics text work."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.interfaces.cobol.conftest import start

import postroom
from postroom.errors import CompileFailed
from postroom.interfaces.cobol.building import LIBRARY, build, built, library
from postroom.interfaces.cobol.precompiler import Options
from postroom.room import Postroom

BROKEN = """\
       IDENTIFICATION DIVISION.
       PROGRAM-ID. P.
       DATA DIVISION.
       WORKING-STORAGE SECTION.
       COPY "area.cpy".
       COMMUNICATION SECTION.
       CD  C FOR OUTPUT
           STATUS KEY IS S.
       PROCEDURE DIVISION.
           SEND C
               FROM A
               WITH EMI.
           MOVE NOWHERE TO A.
"""
MULTICS = r"""
#include <stdio.h>
#include <string.h>
#include "postroom.h"

int main(void) {
    struct input_CD in;
    struct Output_CD out;
    char text[20] = "", key[2], names[48];
    struct OPI_input_CD opi = {.q_ptr = names, .status_key_ptr = key, .area_ptr = text, .area_size = 20};
    struct OPI_output_CD to = {.area_ptr = "hello", .area_size = 5, .destinations = 1, .end_key = '2'};
    struct OPI_key pw = {.what = POSTROOM_OUTPUT, .destinations = 1, .password = "WRONG"};
    int code;
    memset(&in, ' ', sizeof in), memset(&out, ' ', sizeof out);
    memcpy(out.destination_count, "00010005", 8);
    memcpy(out.destination_table[0].symbolic_destination, "q", 1);
    SEND(&out, &to, &code), printf("%d %.2s %c\n", code, out.status_key, out.destination_table[0].error_key[0]);
    DISABLE(&out, &pw, &code), printf("%d\n", code);
    memcpy(in.symbolic_queue, "q", 1);
    ACCEPT(&in, NULL, &code), printf("%d %.6s\n", code, in.message_count);
    RECEIVE(&in, &opi, &code), printf("%d %.2s %.5s %s\n", code, key, names, text);
    printf("%d\n", postroom_give_back());
    RECEIVE(&in, &opi, &code), printf("%d %s\n", code, text);
    opi.bits = POSTROOM_NO_WAIT;
    RECEIVE(&in, &opi, &code), printf("%d\n", code);
    memcpy(in.symbolic_queue, "nowhere", 7);
    RECEIVE(&in, &opi, &code), printf("%d\n", code);
    return 0;
}
"""


def test_the_compilers_errors_name_the_lines_of_the_author(cobc: str, tmp_path: Path) -> None:
    file = tmp_path / "p.cob"
    file.write_text(BROKEN)
    (tmp_path / "area.cpy").write_text("       01  A PIC X(5).\n       01  B PIC WRONG.\n")
    with pytest.raises(CompileFailed) as refused:
        build(file, tmp_path / "p", Options())
    assert f"{file}:13" in str(refused.value)
    assert f"{tmp_path / 'area.cpy'}:2" in str(refused.value)
    assert not (tmp_path / "p").exists()


def test_what_was_made_of_the_same_text_is_used_again(
    cobc: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    file = tmp_path / "p.cob"
    file.write_text(BROKEN.replace("MOVE NOWHERE TO A", "STOP RUN").replace('COPY "area.cpy"', "01 A PIC X(5)"))
    made = built(file, Options())
    before = made.stat()
    assert built(file, Options()) == made
    assert made.stat().st_mtime_ns == before.st_mtime_ns
    assert library().parent == made.parent
    assert [each.name for each in made.parent.iterdir() if each.name.startswith(".")] == []


def test_the_calls_of_the_multics_text(room: Postroom, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    room.queues.create("q", password="PW")
    source = tmp_path / "m.c"
    source.write_text(MULTICS)
    subprocess.run(["cc", "-Wall", "-Werror", f"-I{LIBRARY}", "-o", tmp_path / "m", source, library()], check=True)
    environment = {**os.environ, "POSTROOM_PYTHON": sys.executable, "POSTROOM_URL": room._parts.url}
    ran = subprocess.run([tmp_path / "m"], env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert ran.stdout.splitlines() == ["0 00 0", "40", "0 000001", "0 00 q     hello", "0", "0 hello", "1", "20"], (
        ran.stderr
    )
    assert room.queues.history("q").messages[0].body == "hello"


def test_without_a_room_or_a_session_the_status_is_99(cobc: str, tmp_path: Path) -> None:
    file = tmp_path / "p.cob"
    text = BROKEN.replace("MOVE NOWHERE TO A.", "DISPLAY S.\n           STOP RUN.")
    file.write_text(text.replace('COPY "area.cpy"', "01 A PIC X(5)"))
    ran = start(built(file, Options()), str(tmp_path / "nowhere.db"), tmp_path)
    assert ran.communicate(timeout=60)[0] == "99\n"


def test_a_room_that_is_chosen_by_the_working_directory(cobc: str, tmp_path: Path) -> None:
    source = tmp_path / "m.c"
    source.write_text(MULTICS)
    subprocess.run(["cc", f"-I{LIBRARY}", "-o", tmp_path / "m", source, library()], check=True)
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        with postroom.open(str(tmp_path / name / "postroom.db")) as room:
            room.queues.create("q")
    environment = {key: value for key, value in os.environ.items() if key != "POSTROOM_URL"}
    environment["POSTROOM_PYTHON"] = sys.executable
    subprocess.run(
        [tmp_path / "m"], env=environment, cwd=tmp_path / "there", timeout=60, check=True, capture_output=True
    )
    for name, count in (("here", 0), ("there", 1)):
        with postroom.open(str(tmp_path / name / "postroom.db")) as room:
            assert room.count("q").queues[0].processed == count


@pytest.mark.parametrize("standard", ["cobol85", "xopen", "ibm", "cobol2014"])
def test_every_standard_of_the_compiler_knows_our_calls(cobc: str, tmp_path: Path, standard: str) -> None:
    file = tmp_path / "p.cob"
    file.write_text(BROKEN.replace('COPY "area.cpy".', "01 A PIC X.").replace("MOVE NOWHERE TO A", "STOP RUN"))
    build(file, tmp_path / "p", Options(), standard)
    assert (tmp_path / "p").is_file()
