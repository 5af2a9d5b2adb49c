"""Forms whose functions are asked in another process: the same answers, and bounds."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import pytest

from postroom.engine.bounded_process import BoundedProcesses
from postroom.errors import FieldRefused, FunctionFailed
from postroom.stations.forms import filling_process, functions
from postroom.stations.forms.catalog import Edition
from postroom.stations.forms.filling import created
from postroom.stations.forms.filling_process import created_apart
from postroom.stations.forms.reader import parse

(LETTER,) = parse(
    "type LETTER\n| To: ________ Seal: ________ KEY: ____ |\nfield To string required\n"
    "field Seal string automatic seal_apart\nfield KEY key automatic\n",
    "letter.form",
)
EDITION = Edition(LETTER, 3)
MODULE = """
import os, time
import postroom

@postroom.function
def seal_apart(values):
    to = values["To"]
    if to == "ends":
        os._exit(3)
    if to == "hangs":
        time.sleep(60)
    if to == "raises":
        raise ValueError("no wax")
    return f"{to} by {os.getpid()}"
"""


@pytest.fixture(autouse=True)
def _sealing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module with a function, which other processes can import, too."""
    (tmp_path / "sealing_apart.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setattr(filling_process, "_attendants", BoundedProcesses("postroom.stations.forms.filling_process"))
    sys.modules.pop("sealing_apart", None)
    __import__("sealing_apart")


def test_the_form_is_the_same_but_for_the_process_that_sealed_it() -> None:
    here = created(EDITION, {"To": "Ann"}, 100_001, "desk", 0)
    there = created_apart(EDITION, {"To": "Ann"}, 100_001, "desk", 0)
    assert f"Ann by {os.getpid()}" in here
    assert f"Ann by {os.getpid()}" not in there
    assert "Ann by " in there


@pytest.mark.parametrize(
    ("to", "why"),
    [("ends", "it ended its process"), ("hangs", "exceeded the limit of 1 seconds"), ("raises", "no wax")],
)
def test_a_bad_function_is_told_and_the_next_form_is_made(to: str, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "seconds", lambda: 1.0)
    with pytest.raises(FunctionFailed, match=f"field Seal: the function seal_apart failed: .*{why}"):
        created_apart(EDITION, {"To": to}, 100_001, "desk", 0)
    assert "Bob by " in created_apart(EDITION, {"To": "Bob"}, 100_002, "desk", 0)


@pytest.mark.parametrize(
    ("to", "why"), [("Ann", None), ("ends", "it ended its process"), ("hangs", "exceeded the limit")]
)
def test_a_function_of_the_main_program_is_called_apart_too(
    to: str, why: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def seal_apart(values: dict[str, str]) -> str:
        if values["To"] == "ends":
            os._exit(3)
        while values["To"] == "hangs":
            pass
        return f"{values['To']} sealed by {os.getpid()}"

    functions.function(seal_apart)
    monkeypatch.setattr(functions, "seconds", lambda: 1.0)
    if why is None:
        sealed = created_apart(EDITION, {"To": to}, 100_001, "desk", 0)
        assert "Ann sealed by " in sealed
        assert f"by {os.getpid()}" not in sealed
    else:
        with pytest.raises(FunctionFailed, match=f"the function seal_apart failed: .*{why}"):
            created_apart(EDITION, {"To": to}, 100_001, "desk", 0)


def test_a_function_that_cannot_leave_the_main_program_is_refused_with_advice() -> None:
    lock = threading.Lock()

    def seal_apart(values: dict[str, str]) -> str:
        with lock:
            return "sealed"

    functions.function(seal_apart)
    with pytest.raises(FunctionFailed, match=r"cannot be sent to its own process .*POSTROOM_FUNCTIONS"):
        created_apart(EDITION, {"To": "Ann"}, 100_001, "desk", 0)


def test_a_refusal_there_is_the_same_refusal_here() -> None:
    with pytest.raises(FieldRefused) as here:
        created(EDITION, {"To": ""}, 100_001, "desk", 0)
    with pytest.raises(FieldRefused) as there:
        created_apart(EDITION, {"To": ""}, 100_001, "desk", 0)
    assert str(there.value) == str(here.value)


def test_a_form_without_functions_of_ours_needs_no_other_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filling_process, "_attendants", None)
    (note,) = parse("type NOTE\n| To: ____ |\nfield To string free\n", "note.form")
    assert "Ann" in created_apart(Edition(note, 1), {"To": "Ann"}, 100_001, "desk", 0)
