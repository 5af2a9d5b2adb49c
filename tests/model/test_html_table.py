"""Tables in notebooks: whatever a message says, it is text."""

from __future__ import annotations

from pathlib import Path

import pytest
from lxml import html
from tests.stations.world import desk, network

from postroom.model.html_table import html_table
from postroom.room import Postroom

ATTACK = "<script>alert(1)&\"'"


def cells(text: str) -> list[str]:
    tree = html.fragment_fromstring(text)
    assert {each.tag for each in tree.iter()} <= {"table", "caption", "thead", "tbody", "tr", "th", "td"}
    return [each.text_content() for each in tree.iter("td")]


def test_a_long_table_shows_its_beginning_and_its_length() -> None:
    shown = html_table("q", ["n"], ([number] for number in range(500)), 500)
    assert cells(shown) == [str(number) for number in range(100)]
    assert "q (500, the first 100)" in shown


def test_queues_messages_and_traces_are_shown_escaped(room: Postroom) -> None:
    queue = room.queues.create(ATTACK)
    key = queue.send(ATTACK).key
    assert cells(queue._repr_html_()) == [ATTACK, "1", "0", ""]
    assert ATTACK in cells(room.peek(ATTACK)._repr_html_())
    assert ATTACK in cells(room.frame(ATTACK)._repr_html_())
    traced = room.trace(key, causes=True)._repr_html_()
    assert ATTACK in cells(traced)
    assert key in cells(traced)


def test_forms_are_shown_escaped(tmp_path: Path) -> None:
    with network(str(tmp_path / "room.db"), tmp_path, {}, {"ann": "control"}) as room:
        desk(room, "ann").create("NOTE", {"To": ATTACK, "Count": "3"})
        answer = desk(room, "ann").query("NOTE")
        assert ATTACK in cells(answer._repr_html_())
        assert cells(answer[0]._repr_html_())[:2] == ["To", ATTACK]


def test_graphs_are_shown(room: Postroom, tmp_path: Path) -> None:
    (tmp_path / "t.flow").write_text(
        "domain t\nspace A : [n: int]\nspace B : [n: int]\narc up : A -> B select [n: n > 3]\n"
    )
    room.load(tmp_path / "t.flow")
    shown = cells(room.flows.graph()._repr_html_())
    assert shown[:3] == ["up", "A", "B"]


@pytest.mark.parametrize("cell", [None, 17, "x"])
def test_a_cell_is_its_text(cell: object) -> None:
    assert cells(html_table("q", ["a"], [[cell]], 1)) == ["" if cell is None else str(cell)]
