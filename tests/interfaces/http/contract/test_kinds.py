"""Kinds of values in a request: what is good is taken, what is not is refused by its name."""

from __future__ import annotations

from typing import Any

import pytest

from postroom.errors import RequestInvalid
from postroom.interfaces.http.contract import kinds


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (kinds.NUMBER, ["5", 5, "-1", "9" * 30, 2**63], ["x", "", 1.5, True, None, "9" * 500, "²"]),
        (kinds.SECONDS, ["0.5", 1, 2.5, "nan", "inf", 1e300], ["x", True, None, []]),
        (kinds.FLAG, [True, "true", "false"], ["yes", 1, None]),
        (kinds.TEXT, ["x", ""], [1, None, []]),
        (kinds.MOMENT, ["2026-01-31T12:00:00Z", "2026-01-31T12:00", "2026-01-31T12:00+02:00"], ["noon", "", 5, None]),
        (kinds.NAMES, ["a/b", ["a", "b"]], [1, [], [1], None]),
        (kinds.OBJECT, [{}], [[], "x", None]),
        (kinds.TEXTS, [["x"], []], ["x", [1], None]),
        (kinds.QUEUES, [["a", "b/c"]], ["x", [1], None]),
        (kinds.OBJECTS, [[], [{}]], [{}, "x", [1], [None], ["a", "a"], [["a", 1]], None]),
        (
            kinds.COMPENSATION,
            [{"body": {}}, {"body": "x", "format": None, "queue": ["a", "b"], "properties": {}}],
            [{}, [], {"body": "x", "format": []}, {"body": "x", "type": 5}, {"body": "x", "properties": True}],
        ),
        (
            kinds.FILES,
            [{"a.qdl": "x"}],
            [{"../a.qdl": "x"}, {"/etc/x": ""}, {"": ""}, {"..": ""}, {"a": 1}, {"a\n": ""}, {"é" * 150: ""}],
        ),
    ],
)
def test_a_parameter_is_what_it_should_be_or_is_refused(kind: kinds.Kind, good: list[Any], bad: list[Any]) -> None:
    for value in good:
        kind.checked("x", value)
    for value in bad:
        with pytest.raises(RequestInvalid, match=r"^x: "):
            kind.checked("x", value)
