"""Python's collector while there is much to do: rare, never off, and as before when the last one is done."""

from __future__ import annotations

import ast
import gc
import threading
from pathlib import Path

import pytest

from postroom.engine.spark import garbage_collection
from postroom.engine.spark.garbage_collection import RARE_OBJECTS, freeze_loaded, rarely_collecting

SOURCE = Path(__file__).parents[3] / "src" / "postroom"


def test_it_is_rare_meanwhile_and_as_before_afterwards() -> None:
    usual = gc.get_threshold()
    with rarely_collecting(), rarely_collecting():
        assert gc.get_threshold() == (RARE_OBJECTS, *usual[1:])
        assert gc.isenabled()
    assert gc.get_threshold() == usual
    with pytest.raises(ValueError, match="a test"), rarely_collecting():
        raise ValueError("a test")
    assert gc.get_threshold() == usual


def test_the_last_of_several_threads_sets_it_back() -> None:
    usual, inside, leave = gc.get_threshold(), threading.Event(), threading.Event()

    def other() -> None:
        with rarely_collecting():
            inside.set()
            assert leave.wait(20)

    thread = threading.Thread(target=other)
    with rarely_collecting():
        thread.start()
        assert inside.wait(20)
    assert gc.get_threshold()[0] == RARE_OBJECTS
    leave.set()
    thread.join()
    assert gc.get_threshold() == usual


def test_cycles_do_not_pile_up_however_long_it_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(garbage_collection, "RARE_OBJECTS", 5_000)
    before = gc.get_stats()[0]["collections"]
    with rarely_collecting():
        for _ in range(20_000):
            cycle: list[object] = []
            cycle.append(cycle)
    assert gc.get_stats()[0]["collections"] - before >= 3


def test_who_has_switched_it_off_keeps_it_off() -> None:
    usual = gc.get_threshold()
    gc.set_threshold(0)
    try:
        with rarely_collecting():
            assert gc.get_threshold()[0] == 0
        assert gc.get_threshold()[0] == 0
    finally:
        gc.set_threshold(*usual)


def test_what_the_first_tasks_load_is_not_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    frozen: list[bool] = []
    monkeypatch.setattr(gc, "freeze", lambda: frozen.append(True))
    monkeypatch.setattr(garbage_collection, "_tasks", iter(range(100)))
    for _ in range(10):
        freeze_loaded()
    assert len(frozen) == 3


def yields_inside(source: str) -> list[int]:
    """The lines where a caller gets something while collections are rare."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.With, ast.AsyncWith)):
            rare = any("rarely_collecting" in ast.unparse(item.context_expr) for item in node.items)
            inside = [each for part in node.body for each in ast.walk(part)]
            found += [each.lineno for each in inside if rare and isinstance(each, (ast.Yield, ast.YieldFrom))]
    return found


def test_nobody_hands_out_anything_while_collections_are_rare() -> None:
    assert yields_inside("def f():\n    with rarely_collecting():\n        yield 1\n") == [3], "the check can fail"
    for file in SOURCE.rglob("*.py"):
        assert yields_inside(file.read_text()) == [], f"{file}: a caller may keep it waiting for ever"
