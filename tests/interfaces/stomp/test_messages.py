"""Destinations, headers and content types."""

from __future__ import annotations

import pytest

from postroom.errors import ArgumentInvalid, PropertyInvalid, RequestInvalid, TextInvalid
from postroom.interfaces.stomp.frames import Frame
from postroom.interfaces.stomp.messages import Destination, posting


def test_destinations_are_queues_levels_and_spaces() -> None:
    assert Destination.of("/queue/CLAIMS/SOUTH") == Destination(("CLAIMS", "SOUTH"), False)
    assert Destination.of("/topic/Trades") == Destination(("Trades",), True)
    assert str(Destination.of("/queue/a/b")) == "/queue/a/b"
    for wrong in ("orders", "/queue/", "/topic/", "/exchange/x", "", "/queue//x", "/queue/a/b/c/d/e"):
        with pytest.raises(ArgumentInvalid):
            Destination.of(wrong)


@pytest.mark.parametrize(
    ("said", "form", "kept"),
    [
        (None, "text", None),
        ("text/plain", "text", None),
        ("application/json", "json", None),
        ("application/json;charset=utf-8", "json", "application/json;charset=utf-8"),
        ("application/vnd.order+json", "json", "application/vnd.order+json"),
        ("application/xml", "xml", None),
        ("text/xml", "xml", "text/xml"),
        ("text/csv", "text", "text/csv"),
    ],
)
def test_a_content_type_is_a_format_and_comes_back(said: str | None, form: str, kept: str | None) -> None:
    body = {"json": b"{}", "xml": b"<a/>"}.get(form, b"x")
    headers = {"destination": "/queue/q", "colour": "red"} | ({} if said is None else {"content-type": said})
    wanted = posting(Frame("SEND", headers, body), Destination.of("/queue/q"), "ann")
    assert wanted.draft.format == form
    assert ("content-type" in wanted.draft.properties) is (kept is not None)
    assert '"colour":"red"' in wanted.draft.properties
    assert "destination" not in wanted.draft.properties


def test_what_is_said_of_a_message_is_checked() -> None:
    to = Destination.of("/queue/q")
    with pytest.raises(TextInvalid):
        posting(Frame("SEND", {}, b"\xff"), to, "ann")
    with pytest.raises(RequestInvalid, match="charset"):
        posting(Frame("SEND", {"content-type": "text/plain; charset=latin-1"}, b"x"), to, "ann")
    with pytest.raises(PropertyInvalid):
        posting(Frame("SEND", {"sphere": "mine"}, b"x"), to, "ann")
    wanted = posting(Frame("SEND", {"idempotency-key": "7"}, b"{}"), to, "ann")
    assert (wanted.idempotency_key, wanted.unsaid, wanted.actor) == ("ann/7", True, "ann")
