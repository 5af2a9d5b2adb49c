"""Types of Table 1: read, printed, and compared."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.flows.blocks import lines

from postroom.errors import FlowInvalid
from postroom.flows.graph.meta import META_TYPE
from postroom.flows.language.types import SCALARS, Bag, Field, List, Scalar, Tuple, Type, Union, accepts, parse

#: The type of the meta-space as the text prints it; it lacks the bracket that closes AddArc, and that of RequestAddArc.
PRINTED = """
[ principal: string, broker: string, action: union [
  AddArc: [ arcName: string, srcNode: string, destNode: string, func: union [
    Transform: [ srcPat: string, resultPat: string ] ,
    Select : [ pat: string ],
    Merge: []]
  DeleteArc: [ arcName: string],
  AddSpace: [ nodeName: string],
  DeleteSpace: [ nodeName: string],
  RequestAddArc: [ id: int, arcName: string, srcNode: string,
  destNode: string, func: union [
    Transform: [ srcPat: string, resultPat: string ] ,
    Select : [ pat: string ],
    Merge: []],
  RequestDeleteArc: [ id: int, arcName: string],
  RequestProcessed: [ id: int, success: boolean, reason: string ],
  DisableArc: [ arcName: string],
  EnableArc: [ arcName: string]]]
"""

NAMES = st.sampled_from("a b c d".split())


def types(depth: int = 3) -> st.SearchStrategy[Type]:
    scalars: st.SearchStrategy[Type] = st.sampled_from(SCALARS).map(Scalar)
    if depth == 0:
        return scalars
    inner = types(depth - 1)
    named = st.lists(st.tuples(NAMES, inner), max_size=3, unique_by=lambda pair: pair[0])
    fields = named.map(lambda pairs: tuple(Field(name, type) for name, type in pairs))
    unnamed = st.lists(inner, max_size=3).map(lambda some: tuple(Field(None, type) for type in some))
    return (
        scalars
        | inner.map(Bag)
        | inner.map(List)
        | fields.map(Tuple)
        | unnamed.map(Tuple)
        | fields.filter(bool).map(Union)
    )


@pytest.mark.parametrize("line", lines("types.txt"))
def test_a_type_is_read_and_printed_or_refused_with_its_place(line: str) -> None:
    if " !> " in line:
        text, why = line.split(" !> ")
        with pytest.raises(FlowInvalid) as caught:
            parse(text)
        assert str(caught.value) == why
    else:
        text, printed = line.split(" => ")
        assert str(parse(text)) == printed


@settings(deadline=None)
@given(types())
def test_what_is_printed_reads_back_as_the_same(type: Type) -> None:
    assert parse(str(type)) == type
    assert accepts(type, type)


def test_the_type_of_the_meta_space_is_the_one_of_the_text() -> None:
    closed = PRINTED.replace("Merge: []]\n  DeleteArc", "Merge: []]],\n  DeleteArc").replace(
        "Merge: []],", "Merge: []]],"
    )
    assert parse(closed) == META_TYPE
    assert isinstance(META_TYPE, Tuple)
    action = META_TYPE.fields[2].type
    assert isinstance(action, Union)
    assert len(action.tags) == 9


@pytest.mark.parametrize(
    ("wanted", "given", "fits"),
    [
        ("decimal", "int", True),
        ("float", "decimal", True),
        ("int", "decimal", False),
        ("string", "atom", False),
        ("[a: int, b: float]", "[int, int]", True),
        ("[a: int]", "[b: int]", False),
        ("[a: int]", "[a: int, b: int]", False),
        ("{float}", "{int}", True),
        ("{int}", "(int)", False),
        ("union [A: int, B: int]", "union [B: int]", True),
        ("union [B: int]", "union [A: int, B: int]", False),
    ],
)
def test_a_number_that_loses_nothing_may_stand_for_another(wanted: str, given: str, fits: bool) -> None:
    assert accepts(parse(wanted), parse(given)) is fits


def test_depth_is_bounded() -> None:
    with pytest.raises(FlowInvalid, match="more than 100 things inside one another"):
        parse("{" * 200 + "int" + "}" * 200)
