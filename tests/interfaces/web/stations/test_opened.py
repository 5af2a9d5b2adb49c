"""What a user has changed of a form is told from what the page had."""

from __future__ import annotations

from postroom.interfaces.web.stations.opened import digest, opened, overtaken, written

STORED = {"Reason": "R1", "Answer": "A0", "Note": "a\nb"}
#: What the page had, when Reason was R0 still.
WAS = {"Reason": digest("R0"), "Answer": digest("A0"), "Note": digest("a\nb")}


def test_a_text_that_the_page_had_is_not_written_back() -> None:
    assert written({"Reason": "R0", "Answer": "A1"}, STORED, WAS) == {"Answer": "A1"}


def test_a_text_that_is_stored_already_is_not_written() -> None:
    assert written({"Reason": "R1", "Answer": "A0"}, STORED, WAS) == {}


def test_an_emptied_field_is_written() -> None:
    assert written({"Answer": ""}, STORED, WAS) == {"Answer": ""}


def test_the_ends_of_lines_of_a_browser_are_no_change() -> None:
    assert written({"Note": "a\r\nb"}, STORED, WAS) == {}


def test_without_what_the_page_had_a_text_is_compared_with_what_is_stored() -> None:
    assert written({"Reason": "R0", "Answer": "A0"}, STORED, {}) == {"Reason": "R0"}


def test_only_a_field_that_both_have_changed_is_overtaken() -> None:
    assert overtaken({"Reason": "R2", "Answer": "A1"}, STORED, WAS) == {"Reason": "R1"}


def test_what_the_page_had_is_read_from_what_was_sent() -> None:
    assert opened([("was:A field", "12"), ("field:A field", "x"), ("seen", "y")]) == {"A field": "12"}
