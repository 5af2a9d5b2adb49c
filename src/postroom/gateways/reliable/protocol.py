"""Reads and writes the bodies and headers of WS-ReliableMessaging 1.1."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from postroom.model.soap import ADDRESSING, RELIABLE, Envelope
from postroom.model.xmltext import escaped

ANONYMOUS = f"{ADDRESSING}/anonymous"
_NAMED = f'xmlns:wsrm="{RELIABLE}"'
_RM = f"{{{RELIABLE}}}"
_NUMBER_MAX = 9_223_372_036_854_775_807

Ranges = Sequence[tuple[int, int]]


def action(name: str) -> str:
    return f"{RELIABLE}/{name}"


def create_sequence() -> str:
    acks = f'<wsrm:AcksTo><wsa:Address xmlns:wsa="{ADDRESSING}">{ANONYMOUS}</wsa:Address></wsrm:AcksTo>'
    return f"<wsrm:CreateSequence {_NAMED}>{acks}</wsrm:CreateSequence>"


def create_sequence_response(identifier: str) -> str:
    behaviour = "<wsrm:IncompleteSequenceBehavior>NoDiscard</wsrm:IncompleteSequenceBehavior>"
    return f"<wsrm:CreateSequenceResponse {_NAMED}>{_identifier(identifier)}{behaviour}</wsrm:CreateSequenceResponse>"


def ending(word: str, identifier: str, last: int) -> str:
    """The body of a ``CloseSequence`` or ``TerminateSequence``."""
    number = f"<wsrm:LastMsgNumber>{last}</wsrm:LastMsgNumber>" if last else ""
    return f"<wsrm:{word} {_NAMED}>{_identifier(identifier)}{number}</wsrm:{word}>"


def ended(word: str, identifier: str) -> str:
    return f"<wsrm:{word}Response {_NAMED}>{_identifier(identifier)}</wsrm:{word}Response>"


def sequence(identifier: str, number: int) -> str:
    inside = f"{_identifier(identifier)}<wsrm:MessageNumber>{number}</wsrm:MessageNumber>"
    return f'<wsrm:Sequence {_NAMED} soap:mustUnderstand="1">{inside}</wsrm:Sequence>'


def ack_requested(identifier: str) -> str:
    return f"<wsrm:AckRequested {_NAMED}>{_identifier(identifier)}</wsrm:AckRequested>"


def acknowledgement(identifier: str, ranges: Ranges, final: bool) -> str:
    elements = "".join(f'<wsrm:AcknowledgementRange Lower="{low}" Upper="{high}"/>' for low, high in ranges)
    end = "<wsrm:Final/>" if final else ""
    inside = f"{_identifier(identifier)}{elements or '<wsrm:None/>'}{end}"
    return f"<wsrm:SequenceAcknowledgement {_NAMED}>{inside}</wsrm:SequenceAcknowledgement>"


def _identifier(identifier: str) -> str:
    return f"<wsrm:Identifier>{escaped(identifier)}</wsrm:Identifier>"


# --- reading ---


def identifier_of(element: Any) -> str:
    return (element.findtext(f"{_RM}Identifier") or "").strip()


def number_of(text: str | None) -> int | None:
    """A message number; None if it is invalid."""
    digits = (text or "").strip()
    value = int(digits) if digits.isascii() and digits.isdecimal() and len(digits) < 20 else 0
    return value if 1 <= value <= _NUMBER_MAX else None


def message_number(element: Any) -> int | None:
    return number_of(element.findtext(f"{_RM}MessageNumber"))


def acknowledged(envelope: Envelope, identifier: str) -> list[tuple[int, int]]:
    """The acknowledged ranges of a sequence in an envelope."""
    ranges = []
    for block in envelope.headers(RELIABLE, "SequenceAcknowledgement"):
        if identifier_of(block) == identifier:
            for element in block.findall(f"{_RM}AcknowledgementRange"):
                low, high = number_of(element.get("Lower")), number_of(element.get("Upper"))
                if low is not None and high is not None and low <= high:
                    ranges.append((low, high))
    return ranges


def accounts_for(envelope: Envelope, identifier: str) -> bool:
    """Whether an envelope acknowledges a sequence, even with no message."""
    return any(identifier_of(block) == identifier for block in envelope.headers(RELIABLE, "SequenceAcknowledgement"))


def within(number: int, ranges: Iterable[tuple[int, int]]) -> bool:
    return any(low <= number <= high for low, high in ranges)


def body_name(envelope: Envelope) -> str | None:
    """Which protocol body an envelope has; None if it has a message."""
    content = envelope.content()
    tag = "" if content is None else str(content.tag)
    return tag.removeprefix(_RM) if tag.startswith(_RM) else None
