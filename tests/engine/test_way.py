"""What both ways have in common: the task, and whose functions go along with it."""

from __future__ import annotations

import json
from types import ModuleType
from typing import Any

import pytest
from tests.engine.test_worker_process import Deeds, words

from postroom.engine.spark.worker import Bounds
from postroom.engine.way import answered, modules_of


def test_a_task_answers_what_it_reads() -> None:
    _, said = json.loads(answered(Deeds(), json.dumps(words("a", "b")).encode(), Bounds()))
    assert said == [[0, "A"], [1, "B"]]


def test_modules_of_others_go_along_and_ours_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = ModuleType("only_here")
    monkeypatch.setitem(__import__("sys").modules, "only_here", module)

    def theirs() -> None: ...

    def main() -> None: ...

    theirs.__module__, main.__module__ = "only_here", "__main__"
    assert modules_of([theirs, theirs, main, answered]) == [module]
