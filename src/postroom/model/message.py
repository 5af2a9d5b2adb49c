"""The message: what every capability sends, finds, processes and undoes.

A ``Draft`` is what a sender gives, ``Stored`` what a store keeps, a ``Message`` what a reader gets. None ever changes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import partial
from hashlib import blake2b
from typing import Any, NamedTuple, Protocol

from postroom.errors import BodyError, FormatUnclear, JsonMalformed, NotInSphere, PropertyInvalid, TextInvalid
from postroom.limits import BODY_BYTES_MAX, PROPERTIES_MAX, PROPERTY_BYTES_MAX
from postroom.model.body import TEXT, Format, check_body, check_text, is_text, json_text, parse_json
from postroom.model.key import key_number, key_text
from postroom.model.moment import is_moment, to_datetime, to_iso
from postroom.model.place import place_of

#: A property is a typed atomic value, fixed for the message's lifetime.
Value = str | int | float | bool | None

NO_PROPERTIES = "{}"
#: In the properties of every message that a sphere knows of, and of few others: a fast look before a slow one.
IN_SPHERE = '"sphere":'
SPHERE = "sphere"  # the property that names the sphere of a message
BLOCKED = "blocked"  # the state of a message that waits for an earlier one of the same key


class Draft(NamedTuple):
    """A message before it has a key, checked."""

    body: str
    format: str  # a Format's value: drivers bind plain strings faster than enumerations
    type: str | None
    properties: str  # canonical JSON

    @classmethod
    def of(
        cls,
        body: Any,
        format: str | Format | None = None,
        type: str | None = None,
        properties: Mapping[str, Value] | None = None,
    ) -> Draft:
        """Check a body and its properties. A string is text unless ``format`` says so; a dict or list is JSON.

        A ``Message`` is passed on unchanged, with its format and type.
        """
        if format is None and properties is None and isinstance(body, str):  # the usual case, by the short way
            check_text(body)
            return tuple.__new__(cls, (body, "text", type, NO_PROPERTIES))
        if isinstance(body, Message):
            if body.corrupt:
                raise TextInvalid(why=f"message {body.key} does not match its hash")
            body, format, type = body.body, format or body.format, type or body.type
        own = given_properties(properties) if properties else NO_PROPERTIES
        text, form = (body, format_of(format)) if isinstance(body, str) else _text_of(body, format)
        check_body(text, form)
        return cls(text, form.value, type, own)

    @classmethod
    def many(
        cls,
        bodies: Iterable[Any],
        format: str | Format | None = None,
        type: str | None = None,
        properties: Mapping[str, Value] | None = None,
    ) -> list[Draft]:
        """The drafts of many bodies with the same format, type and properties."""
        own = given_properties(properties) if properties else NO_PROPERTIES
        form = format_of(format)
        plain = form.value  # looked up once: this loop is about the bodies
        check = check_text if form is Format.TEXT else partial(check_body, form=form)
        text = form is Format.TEXT
        drafts = []
        for body in bodies:
            if isinstance(body, str):
                if not (text and body.isascii() and len(body) <= BODY_BYTES_MAX and "\0" not in body):  # most are
                    check(body)
                drafts.append(tuple.__new__(cls, (body, plain, type, own)))  # the constructor's half cost counts here
            else:
                drafts.append(cls.of(body, format, type, properties))
        return drafts


#: By their names: to look one up takes a fifth of the time of ``Format(name)``.
_FORMATS = {form.value: form for form in Format}
#: By their first character, what bodies look like.
_LOOKS_LIKE = {"<": Format.XML, "{": Format.JSON, "[": Format.JSON}


def looks_like(body: Any, format: str | Format | None = None) -> Format:
    """Guess the format of a body if none was given. In a queue with rules, a body that does not parse so is refused.

    >>> looks_like("<claim/>").value, looks_like("<claim/>", "text").value, looks_like("17 < 18").value
    ('xml', 'text', 'text')
    """
    if format is not None or not isinstance(body, (str, bytes, bytearray)):
        return TEXT
    first = body[:1]
    if first.isspace():
        first = body.lstrip()[:1]
    return _LOOKS_LIKE.get(first if isinstance(first, str) else first.decode("latin-1"), TEXT)


def as_it_looks(draft: Draft, queue: str, watcher: str) -> Draft:
    """A draft with its format guessed, for a queue whose reader ``watcher`` parses documents."""
    form = looks_like(draft.body)
    if draft.format != Format.TEXT.value or draft.type is not None or form is Format.TEXT:
        return draft
    try:
        check_body(draft.body, form)
    except BodyError as error:
        why = error.facts.get("why", error)
        raise FormatUnclear(queue=queue, watcher=watcher, format=form.value.upper(), why=why) from error
    return draft._replace(format=form.value)


class Stored(NamedTuple):
    """A message as a store keeps it: plain numbers and texts."""

    key: int
    queue: str
    created: int
    processed: int | None
    type: str | None
    format: str
    body: str
    hash: bytes
    properties: str
    cause: int | None
    position: int  # the journal number by which it came to where it is
    number: int  # its number among all that ever came to its queue
    last: int  # its newest journal number

    @property
    def sound(self) -> bool:
        """Whether the row still matches its hash."""
        key, _, created, processed, type, form, body, hash, properties, cause, _, _, _ = self
        if processed is not None and not (isinstance(processed, int) and is_moment(processed)):
            return False
        try:
            return message_hash(key, created, cause, body, form, type, properties) == hash
        except (UnicodeEncodeError, TypeError):  # rot can change a value's very type
            return False

    def message(self, processed: int | None = None, body: str | None = None) -> Message:
        """The message of a sound row; ``processed`` or ``body`` (one segment) override the row."""
        if body is not None:
            return Message(self._replace(body=body, processed=processed))
        return Message(self if processed is None else self._replace(processed=processed))

    def image(self, *, blocked: bool = False) -> Message:
        """The message for browsing: a damaged one comes without its content."""
        if self.sound:
            return Message(self, blocked=blocked)
        blank = Stored(self.key, self.queue, 0, None, None, "text", "", b"", NO_PROPERTIES, None, 0, 0, 0)
        return Message(blank, corrupt=True)


class Membership(Protocol):
    """The sphere of a received message, for its recipient."""

    id: str

    def acknowledge(self, *, processed: bool = False) -> None:
        """Acknowledge that the message was received, or that the work on it is done."""
        ...

    def abort(self, reason: str) -> None:
        """Vote against the sphere: it is aborted."""
        ...

    def join(self, heartbeat: float = ...) -> Any:
        """Join: the sphere does not commit before this recipient is done."""
        ...


class Message:
    """A stored message as it was when it was read. It never changes."""

    corrupt: bool  # it no longer matched its hash; what it said is not shown
    blocked: bool  # it waits for an earlier one of the same key, as the policy of its queue wants it
    sphere: Membership | None  # of a message that was received and belongs to a sphere

    __slots__ = ("_stored", "blocked", "corrupt", "sphere")

    def __init__(self, stored: Stored, corrupt: bool = False, blocked: bool = False) -> None:
        self._stored = stored
        self.corrupt = corrupt
        self.blocked = blocked
        self.sphere = None

    @property
    def key(self) -> str:
        """Its name in the network, such as ``00001.00042``."""
        return key_text(self._stored.key)

    @property
    def queue(self) -> str:
        """The queue it was read from."""
        return self._stored.queue

    @property
    def type(self) -> str | None:
        """Its message type, if it has one."""
        return self._stored.type

    @property
    def format(self) -> Format:
        """How its body is written."""
        return _FORMATS[self._stored.format]

    @property
    def body(self) -> str:
        """Its content, as text."""
        return self._stored.body

    @property
    def value(self) -> Any:
        """The body as a Python value: parsed JSON, otherwise text."""
        return parse_json(self.body) if self.format is Format.JSON else self.body

    @property
    def properties(self) -> Mapping[str, Value]:
        """Its properties by name."""
        own = self._stored.properties
        return {} if own == NO_PROPERTIES else json.loads(own)

    @property
    def created(self) -> datetime:
        """When it was created."""
        return to_datetime(self._stored.created)

    @property
    def processed(self) -> datetime | None:
        """When it was received; None if nobody has received it."""
        moment = self._stored.processed
        return None if moment is None else to_datetime(moment)

    def acknowledge(self, *, processed: bool = False) -> None:
        """Tell the sphere that sent this message that it was received; or, ``processed``, that the work is done."""
        self.membership.acknowledge(processed=processed)

    @property
    def membership(self) -> Membership:
        """Its sphere; raises if it has none."""
        if self.sphere is None:
            raise NotInSphere(key=self.key)
        return self.sphere

    @property
    def cause(self) -> str | None:
        """The key of the message that caused this one."""
        number = self._stored.cause
        return None if number is None else key_text(number)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Message) and self.body == other.body and self.as_dict() == other.as_dict()

    def __hash__(self) -> int:
        return hash(self._stored.key)

    def __repr__(self) -> str:
        return f"<message {self.key} in {self.queue}>"

    def _body_in_json(self) -> Any:
        try:
            return parse_json(self.body, digits=True) if self.format is Format.JSON else self.body
        except JsonMalformed:  # a segment: one line of a body is not JSON by itself
            return self.body

    def as_dict(self) -> dict[str, Any]:
        """The JSON form of a message; a JSON body is a value in it, not a string."""
        shape: dict[str, Any] = {
            "key": self.key,
            "queue": place_of(self.queue),
            "type": self.type,
            "format": self.format.value,
            "body": self._body_in_json(),
            "properties": dict(self.properties),
            "created": to_iso(self.created),
            "processed": to_iso(self.processed) if self.processed else None,
            "cause": self.cause,
        }
        if self.corrupt:
            shape["corrupt"] = True
        if self.blocked:
            shape["state"] = BLOCKED
        return shape


def cause_number(body: Any, cause: str | None) -> int | None:
    """The cause of a new message: the one that is named, else the message that its body passes on."""
    if cause is None:
        return body._stored.key if isinstance(body, Message) else None
    return key_number(cause)


def draft_hash(destination: str, draft: Draft) -> bytes:
    """A hash of a send's request, in 16 bytes, to recognise a repetition."""
    body, form, type, properties = draft
    text = f"{destination}\0{form}\0{type or ''}\0{properties}\0{body}"
    return blake2b(text.encode(), digest_size=16).digest()


def message_hash(
    key: int, created: int, cause: int | None, body: str, form: str, type: str | None, properties: str
) -> bytes:
    """A hash of the immutable parts of a message, in 16 bytes; checked at every read."""
    hash = empty_hash()
    hash.update(f"{key}\0{created}\0{cause}\0{form}\0{type or ''}\0{properties}\0{body}".encode())
    return hash.digest()


#: An empty hash: a copy takes two thirds of the time of a new one.
empty_hash = blake2b(digest_size=16).copy


def message_hashes(keys: Iterable[int], created: int, cause: int | None, drafts: Iterable[Draft]) -> Iterator[bytes]:
    """The hashes of many messages."""
    return (message_hash(key, created, cause, *draft) for key, draft in zip(keys, drafts, strict=True))


def hashes_alike(
    keys: Iterable[int], created: int, cause: int | None, bodies: Iterable[str], alike: tuple[str, str | None, str]
) -> list[bytes]:
    """The hashes of many messages that differ only in key and body."""
    form, type, properties = alike
    middle, fresh, hashes = f"\0{created}\0{cause}\0{form}\0{type or ''}\0{properties}\0", empty_hash, list[bytes]()
    for key, body in zip(keys, bodies, strict=True):
        hash = fresh()
        hash.update(f"{key}{middle}{body}".encode())
        hashes.append(hash.digest())
    return hashes


def given_properties(properties: Mapping[str, Value]) -> str:
    """The canonical JSON of the sender's properties, without those that mark a sphere."""
    if "sphere" in properties:
        raise PropertyInvalid(name="sphere", why="only a sphere sets it, on messages sent in it")
    return check_properties(properties)


def check_properties(properties: Mapping[str, Value]) -> str:
    """The canonical JSON of a message's properties; raises and names the bad one."""
    if len(properties) > PROPERTIES_MAX:
        raise PropertyInvalid(name=sorted(map(str, properties))[0], why=f"more than {PROPERTIES_MAX} properties")
    for name, value in properties.items():
        if not isinstance(name, str) or not name or name.strip() != name or not name.isprintable():  # no surrogates
            raise PropertyInvalid(name=name, why="a name is printable text without blanks around it")
        if not (value is None or isinstance(value, (str, int, float, bool))):
            raise PropertyInvalid(name=name, why="a value is a string, a number, a boolean or null")
        if isinstance(value, str) and not is_text(value):
            raise PropertyInvalid(name=name, why="the value is not text")
        if isinstance(value, float) and value - value != 0:
            raise PropertyInvalid(name=name, why="the value is not a finite number")
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise PropertyInvalid(name=name, why="the whole number does not fit into 64 bits")
        if len(f"{name}{value}".encode()) > PROPERTY_BYTES_MAX:
            raise PropertyInvalid(name=name, why=f"name and value have more than {PROPERTY_BYTES_MAX} bytes")
    return properties_text(properties)


def properties_text(properties: Mapping[str, Value]) -> str:
    """The canonical text of properties: equal ones give equal texts."""
    return json.dumps(dict(sorted(properties.items())), ensure_ascii=False, separators=(",", ":"))


def _text_of(body: Any, format: str | Format | None) -> tuple[str, Format]:
    if isinstance(body, (bytes, bytearray)):
        try:
            return body.decode(), format_of(format)
        except UnicodeDecodeError as error:
            raise TextInvalid(why=f"byte {error.start + 1} is not UTF-8") from None
    return json_text(body), format_of(format or Format.JSON)


def format_of(format: str | Format | None) -> Format:
    """A format by name; text by default."""
    if format is None:
        return Format.TEXT
    try:
        return Format(format)
    except ValueError:
        raise TextInvalid(why=f"{format!r} is not a format; use text, json or xml") from None
