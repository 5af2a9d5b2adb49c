"""Images of messages: decoded when they are read, each by the form that its message was made with."""

from __future__ import annotations

from decimal import Decimal

from postroom.stations.forms.catalog import Edition
from postroom.stations.forms.reader import parse
from postroom.stations.queries.images import Answer, Image
from postroom.store.tables.images import KeptImage

(OLD,) = parse("type PART\n| Name: ____ |\nfield Name string free\n", "f")
(NEW,) = parse("type PART\n| Name: ____ Size: ____ |\nfield Name string free\nfield Size decimal free\n", "f")
KEPT = [
    KeptImage(100_001, "North", "PART", 1, '{"Name":"a"}'),
    KeptImage(100_002, "mailbox:South", "PART", 2, '{"Name":"b","Size":"2.50"}'),
]
ANSWER = Answer(7, KEPT, {("PART", 1): Edition(OLD, 1), ("PART", 2): Edition(NEW, 2)}, ["00001.00003"])


def test_an_answer_is_a_sequence_of_images() -> None:
    first, second = ANSWER
    assert (len(ANSWER), ANSWER[0], ANSWER[-1], ANSWER[:1]) == (2, first, second, [first])
    assert first == Image("00001.00001", "North", OLD, '{"Name":"a"}')
    assert (dict(first.fields), dict(second.fields)) == ({"Name": "a"}, {"Name": "b", "Size": Decimal("2.50")})
    assert "Name: b" in second.shown()


def test_an_answer_has_one_json_shape() -> None:
    assert ANSWER.as_dict() == {
        "seq": 7,
        "images": [
            {"key": "00001.00001", "type": "PART", "place": "North", "fields": {"Name": "a"}},
            {
                "key": "00001.00002",
                "type": "PART",
                "place": "mailbox:South",
                "fields": {"Name": "b", "Size": "2.50"},
            },
        ],
        "damaged": ["00001.00003"],
    }
    assert Answer(None, [], {}).as_dict() == {"seq": None, "images": []}
