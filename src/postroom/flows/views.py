"""A message as an event, whatever it is written in: XML elements and lines are the fields of a tuple by their names.

What the fields say is read by the model, as for every other capability.
"""

from __future__ import annotations

from functools import lru_cache

from postroom.errors import BodyMismatch, EventInvalid, TypeInvalid
from postroom.flows.types import Bag, Row, Scalar, Tuple, Type
from postroom.model.body import Format, json_text
from postroom.model.message import Draft
from postroom.model.types import Field, Kind, MessageType, plain
from postroom.model.views import record


def event_text(draft: Draft, type: Type, space: str) -> str:
    """The JSON of an event that is XML, or lines of a typed message; any other text is a Gryphon literal or JSON."""
    if draft.format == "text" and draft.type is None:
        return draft.body
    fields = fields_of(type)
    if fields is None:
        what = "only a tuple of named simple values, or lists of them, can be written as XML or lines"
        raise EventInvalid(space=space, what=what, type=str(type))
    try:
        found = record(draft.body, Format(draft.format), fields, named=False)
    except BodyMismatch as error:
        raise EventInvalid(space=space, what=str(error.facts["why"]), type=str(type)) from None
    lists = {field.name for field in fields.fields if field.many}
    said = {name: [] if value is None and name in lists else plain(value) for name, value in found.items()}
    return json_text({name: value for name, value in said.items() if value is not None})


@lru_cache(maxsize=1_000)
def fields_of(type: Type) -> MessageType | None:
    """The fields of a tuple as the model has them; None if they have no names, or are more than simple values."""
    if not isinstance(type, Tuple):
        return None
    found = []
    for each in type.fields:
        many = isinstance(each.type, Bag | Row)
        inner = each.type.of if isinstance(each.type, Bag | Row) else each.type
        if each.name is None or not isinstance(inner, Scalar):
            return None
        found.append(Field(each.name, _KINDS[inner.name], many))
    try:
        return MessageType("event", tuple(found))
    except TypeInvalid:  # a name that XML does not have
        return None


_KINDS = {
    "atom": Kind.STRING,
    "string": Kind.STRING,
    "int": Kind.INT,
    "boolean": Kind.BOOLEAN,
    "float": Kind.FLOAT,
    "decimal": Kind.DECIMAL,
    "date": Kind.DATE,
    "timestamp": Kind.TIMESTAMP,
}
