"""What a message carries besides its body is read from its properties, and written as it was."""

from __future__ import annotations

import pytest

from postroom.stations.places.postmarks import Postmarks, fetched, postmarks, properties, sent, touched

FULL = Postmarks(3, "North", 2, ("first", "second"), 99, "order-1", fetched=True)


@pytest.mark.parametrize("known", [Postmarks(1), Postmarks(2, "North"), Postmarks(0, due=5), FULL])
def test_what_is_written_is_read_as_it_was(known: Postmarks) -> None:
    assert postmarks(properties(known)) == known


def test_what_is_empty_is_not_written() -> None:
    assert properties(Postmarks(1)) == '{"form":1}'
    assert postmarks("{}") == Postmarks(0)


def test_a_message_that_is_shipped_is_known_by_its_form_its_sphere_and_its_sender() -> None:
    assert postmarks(sent(properties(FULL), "South")) == Postmarks(3, "South", sphere="order-1")
    assert postmarks(sent(properties(FULL), "South", 4)) == Postmarks(3, "South", 4, sphere="order-1")


def test_an_edit_by_a_person_ends_what_procedures_have_noted() -> None:
    assert postmarks(touched(properties(FULL))) == Postmarks(3, "North", sphere="order-1")


def test_mail_that_a_procedure_has_got_is_known_as_mail() -> None:
    assert postmarks(fetched('{"form":1}')) == Postmarks(1, fetched=True)
