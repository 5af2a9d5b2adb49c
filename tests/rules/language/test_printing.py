"""Programs as text again: what is printed reads as the same definitions."""

from __future__ import annotations

import pytest

from postroom.rules.language.definitions import AnyDefinition
from postroom.rules.language.printing import written
from postroom.rules.language.reader import parse

STATEMENTS = [
    "create module shop errorqueue failed",
    "create module shop",
    "create system errorqueue last",
    "create queue a kind basic mode persistent",
    "create queue a kind basic mode transient schema a.xsd priority 3 errorqueue e",
    "create queue a kind outgoingGateway mode persistent interface i.wsdl port P using X policy p.xml",
    "create collection c",
    "create slicing s on p",
    "create property p as xs:string inherited fixed queue a, b value //p queue c",
    "create rule r for a errorqueue e if (/create) then do enqueue <queue>create rule</queue> into b",
]


def without_places(text: str) -> list[object]:
    return [_plain(each) for each in parse(text, "shop.demaq")]


def _plain(definition: AnyDefinition) -> object:
    return written(definition), definition.what, definition.name, definition.module


@pytest.mark.parametrize("text", STATEMENTS)
def test_a_definition_is_printed_and_read_as_the_same(text: str) -> None:
    printed = "".join(written(each) for each in parse(text, "shop.demaq"))
    assert without_places(printed) == without_places(text)
    assert printed.endswith("\n")


def test_what_is_not_a_definition_is_not_printed() -> None:
    with pytest.raises(NotImplementedError):
        written(object())  # type: ignore[arg-type]
