"""What a rule body is made of: offsets that tell the text again."""

from __future__ import annotations

from postroom.rules.language.body import Span
from postroom.rules.language.expression import read

TEXT = """if (/x) then (do enqueue <a/> into q with p value 1 compensate with <undo/> into u, do reset s key "k")"""


def told(span: Span) -> str:
    return TEXT[slice(*span)].strip()


def test_an_enqueue_and_its_compensation_both_go_into_a_queue() -> None:
    (enqueue,) = read(TEXT, 0, len(TEXT)).enqueues
    assert [sent.queue for sent in enqueue.sent] == ["q", "u"]
    assert [told(sent.value) for sent in enqueue.sent] == ["<a/>", "<undo/>"]
    assert [(each.name, told(each.value)) for each in enqueue.properties] == [("p", "1")]
    assert TEXT[enqueue.offset :].startswith("q with")


def test_a_plain_enqueue_sends_itself_alone() -> None:
    text = "if (1) then do enqueue . into q"
    (enqueue,) = read(text, 0, len(text)).enqueues
    assert enqueue.sent == (enqueue,)


def test_a_reset_has_its_slicing_and_its_key() -> None:
    (reset,) = read(TEXT, 0, len(TEXT)).resets
    assert reset.slicing == "s"
    assert reset.key is not None
    assert told(reset.key) == '"k"'


def test_a_variable_means_its_clause_unless_it_is_grouped_again() -> None:
    text = "let $v := 1 return $v"
    body = read(text, 0, len(text))
    use = Span(text.rindex("$v"), len(text))
    found = body.binding_of(use)
    assert found is not None
    assert found.name == "v"
    assert body.binding_of(Span(0, 1)) is None
    grouped = "for $v in a group by $g := $v/@k return $v"
    last = Span(grouped.rindex("$v"), len(grouped))
    assert read(grouped, 0, len(grouped)).binding_of(last) is None
