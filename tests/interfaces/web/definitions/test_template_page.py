"""A template is drawn as it is written, and loaded when it is whole."""

from __future__ import annotations

from tests.interfaces.http.conftest import Served
from tests.interfaces.web.conftest import Browser

LEAVE = """type LEAVE
| Who: ________________  KEY: ___________ |
| From: ____________  Until: ____________ |
field Who   string required
field KEY   key    automatic
field From  date   free
field Until date   free
"""


def drawn(text: str) -> str:
    return text.split('id="drawn"')[1].split("</main>")[0]


def test_a_form_is_drawn_as_its_text_says(office: Served, clerk: Browser) -> None:
    text = drawn(clerk.post("/templates?new=1", do="draw", text=LEAVE).text)
    assert 'aria-label="Form LEAVE"' in text
    assert "problem" not in text
    assert text.count("<input id=") == 2  # two dates; who is a text
    assert 'class="later ' in text
    assert "LEAVE" not in {each.name for each in office.room.definitions.catalog()}


def test_what_is_not_finished_is_drawn_with_what_is_wrong(clerk: Browser) -> None:
    for text, said in (
        ("type LEAVE\n| Who: ____ |\n", "line 1: type LEAVE: a type has fields"),
        ("type LEAVE\n| Who: ____ |\nfield Who strin", "line 3"),
        ("type LEAVE\n| Who: ____ |\n| Fr\nfield Who string free\n", "line 3: a line of a template stands between"),
        ("| Who: ____ |\n", "begin with type NAME"),
    ):
        found = drawn(clerk.post("/templates", do="draw", text=text).text)
        assert said in found, text
        assert ">Who:" in found, text
    assert "Nothing is drawn yet." in clerk.post("/templates", do="draw", text="").text
    odd = clerk.post("/templates", do="draw", text="type <b>\n| <script>: ____ |\n").text
    assert "<script>:" not in odd
    assert "<b>" not in odd


def test_a_template_is_checked_loaded_and_changed(office: Served, clerk: Browser) -> None:
    wrong = clerk.post("/templates", do="load", text=LEAVE.replace("date   free", "dat    free", 1))
    assert wrong.status_code == 422
    assert "line 6" in wrong.text
    assert "It can be loaded." in clerk.post("/templates", do="check", text=LEAVE).text
    assert "LEAVE was loaded." in clerk.post("/templates", do="load", text=LEAVE).text
    assert "Until: ____________" in clerk.get("/templates?type=LEAVE").text
    more = LEAVE.replace("| From", "| Why: ______________________________ |\n| From") + "field Why string free\n"
    clerk.post("/templates?type=LEAVE", do="load", text=more)
    assert office.room.stations.form("LEAVE").form.field("Why") is not None
    assert clerk.get("/templates?type=NOTHING").status_code == 404
    queue = "create queue x kind basic mode persistent"
    assert clerk.post("/templates", do="load", text=queue).status_code == 422
