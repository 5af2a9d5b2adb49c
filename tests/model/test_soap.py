"""Envelopes are read as they are written, in both versions."""

from __future__ import annotations

import pytest

from postroom.model.soap import SPACES, EnvelopeInvalid, addressed, fault_body, name_of, read_envelope, written


@pytest.mark.parametrize("version", SPACES)
def test_an_envelope_is_read_as_it_was_written(version: str) -> None:
    body = '<?xml version="1.0"?>\n<a:x xmlns:a="urn:a" t="a:y">é &amp; <![CDATA[<]]></a:x>'
    envelope = read_envelope(written(version, addressed("urn:act", "urn:id", reply_to="urn:r"), body).encode())
    assert (envelope.version, envelope.addressing("Action"), envelope.addressing("ReplyTo")) == (
        version,
        "urn:act",
        "urn:r",
    )
    assert envelope.message() == '<a:x xmlns:a="urn:a" t="a:y">é &amp; &lt;</a:x>'
    assert envelope.addressing("To") is None
    assert read_envelope(written(version, [], "")).message() is None


@pytest.mark.parametrize("version", SPACES)
def test_a_fault_is_read_as_it_was_written(version: str) -> None:
    body = fault_body(version, "sender", "no <way>", "<d/>", ("urn:sub", "Bad"))
    fault = read_envelope(written(version, [], body)).fault()
    assert fault is not None
    assert (fault.reason, fault.detail) == ("no <way>", "<d/>")
    assert str(fault).startswith("sub:Bad")
    assert read_envelope(written(version, [], "<x/>")).fault() is None


def test_namespaces_that_a_message_may_need_stay() -> None:
    """A prefix may be used in the text of an element, where only its reader knows it."""
    text = written("1.1", [], "<x>q:name</x>").replace("<soap:Envelope ", '<soap:Envelope xmlns:q="urn:q" ')
    assert read_envelope(text).message() == '<x xmlns:q="urn:q">q:name</x>'


@pytest.mark.parametrize("data", [
    b"", b"\xff\xfe<", "<a>é</a>".encode("utf-16"), b"<!DOCTYPE a []><a/>", b"<a/>", b"<?p?>",
    f'<s:Envelope xmlns:s="{SPACES["1.1"]}"/>'.encode(),
    f'<s:Envelope xmlns:s="{SPACES["1.1"]}"><s:Body><?p?></s:Body></s:Envelope>'.encode(),
])  # fmt: skip
def test_what_is_no_envelope_is_refused(data: bytes) -> None:
    with pytest.raises(EnvelopeInvalid):
        read_envelope(data)


def test_headers_for_others_need_not_be_understood() -> None:
    block = '<h:h xmlns:h="urn:h" soap:mustUnderstand="{}" {}/>'
    for must, more, found in (("1", "", True), ("0", "", False), ("true", "", True), ("1", 'soap:actor="urn:x"', False),
                              ("1", 'soap:actor="http://schemas.xmlsoap.org/soap/actor/next"', True)):  # fmt: skip
        envelope = read_envelope(written("1.1", [block.format(must, more)], "<x/>"))
        assert (envelope.must_understand([]) is not None) == found
        assert envelope.must_understand(["urn:h"]) is None


def test_the_name_of_a_document() -> None:
    assert (name_of("<a/>"), name_of('<?xml version="1.0"?><a xmlns="urn:x"/>')) == ("{}a", "{urn:x}a")
