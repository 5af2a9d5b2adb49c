"""Errors in the content of messages."""

from __future__ import annotations

from postroom.errors.root import PostroomError


class BodyError(PostroomError):
    """A message was refused before it entered its queue; nothing was stored."""

    status = "50"


class BodyTooLarge(BodyError):
    code = "body-too-large"
    template = "the body has {size} bytes; the limit is {limit}. Split it, or send a reference to it"
    advice = "Split the body, or store it elsewhere and send a reference."


class BodyMismatch(BodyError):
    code = "body-mismatch"
    template = "the body does not fit type {type}: {why}"
    advice = "Change the body to fit the type; `postroom form TYPE` shows the fields."


class EntryRefused(BodyError):
    """A value that the queue computes for each of its messages cannot be computed for this one."""

    code = "entry-refused"
    template = "queue {queue} refuses the message: {why} ({reason})"
    advice = "Change the message to fit the queue's properties and schema, and send it again."


class EventInvalid(BodyError):
    code = "event-invalid"
    template = "{what}. An event of {space} is {type}"
    advice = "Write the event in the type of its space; `postroom graph` shows the types."


class EventRefused(BodyError):
    """An event in a meta-space asks for an impossible change."""

    code = "event-refused"
    template = "the event was not published in {space}: {why}"
    advice = "Look at the graph with `postroom graph`: the change must fit it."


class FieldRefused(BodyError):
    """A field of a form does not accept the given value."""

    code = "field-refused"
    template = "{type}, field {field}: {why}"
    advice = "Check the field's definition: it says who may write it, and when."


class FormatUnclear(BodyError):
    """The format of a body was not given, and it begins like a document but is not well-formed."""

    code = "format-unclear"
    template = (
        "the messages of {queue} are read by {watcher}; the body begins like {format}, but is not: {why}. "
        "Correct it, or say that it is text: --format text"
    )
    advice = "Correct the body, or give its format: `--format text` stores it as it is."


class FunctionFailed(BodyError):
    code = "function-failed"
    template = "{type}, field {field}: the function {function} failed: {why}"
    advice = "Correct the function, or the fields that it gets. Nothing was written."


class JsonMalformed(BodyError):
    code = "json-malformed"
    template = "the body is not JSON: {why}"
    advice = "Correct the JSON at the given place, or send it as text."


class PropertyInvalid(BodyError):
    code = "property-invalid"
    template = "property {name!r}: {why}"
    advice = "Give the property a name and a value within the limits."


class SchemaInvalid(BodyError):
    code = "schema-invalid"
    template = "the body does not fit the schema of its queue: {why}"
    advice = "Correct the body; the schema is the file that `create queue … schema` names."


class TextInvalid(BodyError):
    code = "text-invalid"
    template = "the body is not text: {why}"
    advice = "Send UTF-8 without NUL, or encode the body; the formats are text, json and xml."


class XmlForbidden(BodyError):
    code = "xml-forbidden"
    template = "the XML body is refused: {why}"
    advice = "Send XML without a DOCTYPE, with nesting and attributes within the limits."


class XmlMalformed(BodyError):
    code = "xml-malformed"
    template = "the body is not well-formed XML: {why}"
    advice = "Correct the XML at the given place, or send it as text."
