"""Errors of what messages say."""

from __future__ import annotations

from postroom.errors.root import PostroomError


class BodyError(PostroomError):
    """A message was refused before it entered its queue; nothing was stored."""

    status = "50"


class BodyTooLarge(BodyError):
    code = "body-too-large"
    template = "the body has {size} bytes; at most {limit} are taken. Split it, or send a reference to it"


class BodyMismatch(BodyError):
    code = "body-mismatch"
    template = "the body does not fit type {type}: {why}"


class EntryRefused(BodyError):
    """What a queue works out for each of its messages cannot be worked out for this one."""

    code = "entry-refused"
    template = "queue {queue} refuses the message: {why} ({reason})"


class EventInvalid(BodyError):
    code = "event-invalid"
    template = "{what}. An event of {space} is {type}"


class EventRefused(BodyError):
    """An event of a meta-space asks for what cannot be."""

    code = "event-refused"
    template = "the event was not published in {space}: {why}"


class FieldRefused(BodyError):
    """A field of a form does not take what was written into it."""

    code = "field-refused"
    template = "{type}, field {field}: {why}"


class FunctionFailed(BodyError):
    code = "function-failed"
    template = "{type}, field {field}: the function {function} failed: {why}"


class JsonMalformed(BodyError):
    code = "json-malformed"
    template = "the body is not JSON: {why}"


class PropertyInvalid(BodyError):
    code = "property-invalid"
    template = "property {name!r}: {why}"


class SchemaInvalid(BodyError):
    code = "schema-invalid"
    template = "the body does not fit the schema of its queue: {why}"


class TextInvalid(BodyError):
    code = "text-invalid"
    template = "the body is not text: {why}"


class XmlForbidden(BodyError):
    code = "xml-forbidden"
    template = "the XML body is refused: {why}"


class XmlMalformed(BodyError):
    code = "xml-malformed"
    template = "the body is not well-formed XML: {why}"
