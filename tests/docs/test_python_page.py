"""The page on Python has every public name, method and answer, each described; errors say what to do."""

from __future__ import annotations

import dataclasses
import importlib.util
import inspect
import re
from pathlib import Path
from types import ModuleType

import pytest

import postroom
from postroom import errors, spark, testing
from postroom.room.journal import RoomJournal

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
PAGE = (REFERENCE / "python.md").read_text()
ADVICE = {kind.code: kind.advice for kind in errors.every_error()}


@pytest.fixture(scope="module")
def api() -> ModuleType:
    spec = importlib.util.spec_from_file_location("python_api", REFERENCE / "python_api.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_public_name_and_method_is_described(api: ModuleType) -> None:
    assert api.missing() == [], "a docstring says why it is there"
    for name in postroom.__all__:
        assert f"\n## {name}\n" in PAGE, name
    for kind in (thing for name in postroom.__all__ if inspect.isclass(thing := getattr(postroom, name))):
        for name, member in inspect.getmembers(kind, inspect.isfunction):
            if not name.startswith("_") and name != "as_dict" and member.__module__.startswith("postroom"):
                assert f"\n### {kind.__name__}.{name}\n" in PAGE, f"{kind.__name__}.{name}"


def test_the_names_of_other_modules_are_described(api: ModuleType) -> None:
    for module in (spark, testing):
        assert module in api.MODULES
        for name in module.__all__:
            told = PAGE.split(f"\n### {module.__name__.removeprefix('postroom.')}.{name}\n")[1]
            assert told.split("\n#")[0].split("```")[2].strip(), f"{name} has a docstring"
    assert "\n#### HandClock.turn\n" in PAGE


def test_signatures_are_those_of_the_code(api: ModuleType) -> None:
    assert api.signature(RoomJournal.locate) == "(key: str) -> str | None"
    assert "\nlocate(key: str) -> str | None\n" in PAGE
    given = api.signature(postroom.open)
    assert given.startswith("(url: str | os.PathLike[str] | None = None, *, actor: str | None = None,")
    assert "0x" not in PAGE, "an address of memory is nobody's signature"


def test_what_public_methods_answer_with_is_public(api: ModuleType) -> None:
    answers = {kind.__name__ for kind in api.answers()}
    assert answers >= {"Sent", "Received", "Listing", "Event", "Client", "Membership", "SphereTold", "StreamTotals"}
    assert {"QueueCount", "Delivery", "Difference", "StoryMessage", "QueueSeen"} <= answers, "what is in an answer, too"
    for kind in api.answers():
        assert kind.__name__ in postroom.__all__, kind
        assert getattr(postroom, kind.__name__) is kind, f"two classes have the name {kind.__name__}"


def test_every_attribute_that_an_answer_is_given_is_described(api: ModuleType) -> None:
    ours = {
        "Answer": {"kept"},
        "ArchiveFolder": {"manifest", "folder"},
        "Client": {"by"},
        "Postroom": {"store", "lock"},
    }
    ours |= {"QueueSession": {"verbs"}, "Sphere": {"atexit"}, "Workers": {"workers"}}
    checked = 0
    for kind in (each for each in api.public_classes() if each.__name__ in postroom.__all__):
        told = PAGE.split(f"\n## {kind.__name__}\n")[1].split("\n#")[0]
        given = {
            name
            for each in kind.__mro__
            if each.__module__.startswith("postroom") and not dataclasses.is_dataclass(each)
            for name in re.findall(r"\bself\.([a-z]\w*)(?:: [^=\n]+)? = ", _written(each))
        }
        for name in given - ours.get(kind.__name__, set()):
            assert f"- `{name}: " in told, f"{kind.__name__}.{name}"
            checked += 1
    assert checked > 15, "LeasedMessage.attempts is one of them"


def _written(kind: type) -> str:
    """How objects of a class are made."""
    return inspect.getsource(vars(kind)["__init__"]) if "__init__" in vars(kind) else ""


def test_every_method_of_a_part_is_told_under_the_name_of_the_part(api: ModuleType) -> None:
    for part, kind in zip(api.PARTS, api.room_parts(), strict=True):
        for name, _ in api.members(kind):
            assert f"\n#### room.{part}.{name}\n" in PAGE


def test_every_error_says_what_to_do() -> None:
    page = (REFERENCE / "errors.md").read_text()
    for code, advice in ADVICE.items():
        assert re.search(rf"^\| `{code}` .*\| {re.escape(advice)} \|$", page, re.MULTILINE), code
        assert advice.endswith("."), code
    assert errors.QueueUnknown(queue="q", nearest="").advice == errors.advice_of("queue-unknown") != ""


def test_advice_names_commands_that_exist() -> None:
    commands = (REFERENCE / "commands.md").read_text()
    checked = 0
    for code, advice in ADVICE.items():
        for said in re.findall(r"`postroom ([a-z]+(?: [a-z]+)?)", advice):
            found = f"\n## postroom {said}\n" in commands or f"\n## postroom {said.split()[0]}\n" in commands
            assert found, f"{code}: postroom {said}"
            checked += 1
        for option in re.findall(r"`(--[a-z]+)", advice):
            assert f" {option} " in commands, f"{code}: {option}"
    assert checked > 20


def test_every_limit_says_what_for() -> None:
    rows = re.findall(
        r"^\| `([A-Z_]+)` \| ([^|]*) \| ([^|]*) ?\|$", (REFERENCE / "limits.md").read_text(), re.MULTILINE
    )
    assert len(rows) > 80
    for name, value, what_for in rows:
        assert value, name
        assert what_for.strip(), f"{name}: a comment behind it says what for"


def test_a_name_is_one_thing() -> None:
    """Two classes of one name cannot be told apart where a signature names one of them."""
    told = re.findall(r"^## (\w+)$", PAGE, re.MULTILINE)
    assert sorted(told) == sorted(set(told))
    assert {"Held", "Retained", "Sent", "SphereSent"} <= set(told)
