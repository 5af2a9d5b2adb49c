"""Functions of whoever runs the room: registered under their names, and called within limits."""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest

from postroom.errors import ArgumentInvalid
from postroom.model.types import FieldValue
from postroom.stations.forms import functions


@pytest.fixture(autouse=True)
def _registered_here_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "_registered", {})
    monkeypatch.setattr(functions, "_imported", set())


def twice(others: Mapping[str, FieldValue]) -> int:
    number = others["N"]
    assert isinstance(number, int)
    return 2 * number


def test_a_function_is_found_by_its_name() -> None:
    assert functions.find("twice") is None
    assert functions.function(twice) is twice
    assert functions.find("twice") is twice
    functions.provide({"other": twice})
    assert functions.find("other") is twice


def test_modules_of_the_environment_are_imported_when_a_function_is_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "prices_of_tests.py").write_text(
        "import postroom\n\n@postroom.function\ndef price(others):\n    return 7\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("POSTROOM_FUNCTIONS", "prices_of_tests")
    price = functions.find("price")
    sys.modules.pop("prices_of_tests")
    assert price is not None
    assert price({}) == 7
    monkeypatch.setenv("POSTROOM_FUNCTIONS", "there_is_no_such_module")
    with pytest.raises(ArgumentInvalid, match="cannot import there_is_no_such_module"):
        functions.find("price")


def test_a_call_answers_or_raises_what_the_function_raises() -> None:
    assert functions.called("twice", twice, {"N": 4}) == 8
    with pytest.raises(AssertionError):
        functions.called("twice", twice, {"N": "four"})


def test_a_function_that_does_not_answer_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()
    monkeypatch.setattr(functions, "EVALUATION_SECONDS", 0.05)
    with pytest.raises(TimeoutError, match=r"limit of 0\.05 seconds"):
        functions.called("slow", lambda _: over.wait(10), {})
    over.set()


def test_in_a_process_of_its_own_a_function_is_called_directly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "_alone", False)
    functions.answer_for_themselves()
    assert functions.called("here", lambda _: threading.current_thread(), {}) is threading.current_thread()
