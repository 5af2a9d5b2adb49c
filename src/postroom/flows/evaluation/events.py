"""Messages as events: the event in a message, and the error message of one that has none."""

from __future__ import annotations

from postroom.engine.steps.effects import Arrival, Document, Enqueue
from postroom.engine.steps.failures import Failure, error_message
from postroom.flows.conversion import event
from postroom.flows.evaluation.paths import ArcPaths
from postroom.flows.graph.versions import RoomGraph
from postroom.flows.language.types import Type
from postroom.model.message import Draft, Stored

_CODE = "PF0001"  # of an event that does not fit, or that an arc cannot work out


def is_event(message: Arrival | Stored) -> bool:
    """Whether a message in a space was admitted as an event; messages that rules put there were not."""
    return message.cause is None and message.format == "json"


def as_event(message: Arrival | Stored, type: Type, space: str) -> str:
    """The event in a message; raises if there is none."""
    if is_event(message):
        return message.body
    return event(Draft(message.body, message.format, None, message.properties), type, space, {}).body


def error(arrival: Arrival, why: str, arc: str | None = None) -> Enqueue:
    """The error message of an event."""
    failure = Failure("application", _CODE, why, arc)
    return error_message(failure, arrival.queue, arrival.key, Document(0, arrival.format, None, arrival.body))


def arcs_behind(room_graph: RoomGraph, living: frozenset[str], space: str) -> list[str]:
    """The names of the arcs that events of a space may meet, in order."""
    return list(dict.fromkeys(step.arc.full_name for step in ArcPaths(room_graph.running, living).ways(space)))
