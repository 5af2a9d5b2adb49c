"""Functions of expressions: the type that each makes of its arguments, and what it refuses."""

from __future__ import annotations

import pytest

from postroom.flows.language.functions import FUNCTIONS
from postroom.flows.language.types import parse


@pytest.mark.parametrize(
    ("name", "given", "made"),
    [
        ("abs", "int", "int"),
        ("abs", "decimal", "decimal"),
        ("abs", "string", None),
        ("concat", "string atom string", "string"),
        ("concat", "", None),
        ("concat", "string int", None),
        ("count", "{int}", "int"),
        ("count", "(string)", "int"),
        ("count", "string", None),
        ("date", "timestamp", "date"),
        ("date", "date", None),
        ("hour", "date", None),
        ("year", "date", "int"),
        ("greatest", "int decimal", "decimal"),
        ("greatest", "int float decimal", "float"),
        ("least", "date date", "date"),
        ("least", "date timestamp", None),
        ("least", "int", None),
        ("least", "boolean boolean", None),
        ("part", "string int int", "string"),
        ("part", "string int", None),
        ("round", "decimal int", "decimal"),
        ("round", "decimal decimal", None),
        ("string", "boolean", "string"),
        ("string", "{int}", None),
        ("has", "atom string", "boolean"),
    ],
)
def test_a_function_makes_this_type_or_is_not_for_these_arguments(name: str, given: str, made: str | None) -> None:
    found = FUNCTIONS[name].result([parse(each) for each in given.split()])
    assert (None if found is None else str(found)) == made


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_is_known_by_its_name_and_says_how_it_is_called(name: str) -> None:
    assert FUNCTIONS[name].name == name
    assert FUNCTIONS[name].usage.startswith(f"{name}(")
    assert FUNCTIONS[name].result([]) is None, "there is none without arguments"
