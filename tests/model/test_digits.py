"""Numbers of JSON keep the digits that they were read with."""

from __future__ import annotations

import json
import pickle
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from postroom.errors import JsonMalformed
from postroom.model.body import parse_json
from postroom.model.digits import Digits, digits_json

BODY = '{"total":3.10,"big":12345678901234567890.123456789012345678,"less":[-0.0,1E2,{"n":1.50}],"whole":70}'


def test_a_number_is_a_float_and_knows_how_it_was_written() -> None:
    number = Digits("3.10")
    assert (number, number + 1, repr(number), number.written) == (3.1, 4.1, "3.1", "3.10")
    again = pickle.loads(pickle.dumps(number))
    assert (again, again.written) == (3.1, "3.10")


def test_a_value_is_written_as_it_was_read() -> None:
    assert digits_json(parse_json(BODY, digits=True), (",", ":")) == BODY
    assert digits_json({"a": [1.5, None, "x", True]}) == json.dumps({"a": [1.5, None, "x", True]})


def test_a_text_that_looks_like_what_stands_for_a_number_stays_that_text() -> None:
    text = '{"a":"0","b":1.10,"c":"\\"0\\""}'
    assert digits_json(parse_json(text, digits=True), (",", ":")) == text


@given(
    st.recursive(
        st.decimals(allow_nan=False, allow_infinity=False).map(str), lambda inner: st.lists(inner), max_leaves=9
    )
)
def test_any_number_keeps_its_digits(value: Any) -> None:
    def written(item: Any) -> str:
        return f"[{','.join(map(written, item))}]" if isinstance(item, list) else item

    text = written(value)
    try:
        read = parse_json(text, digits=True)
    except JsonMalformed:  # 1E400, and such: no message has them
        return
    assert digits_json(read, (",", ":")) == text
