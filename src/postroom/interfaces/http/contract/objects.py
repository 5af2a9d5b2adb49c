"""The objects of a room in JSON, without loss, between a server and the client of this package.

Other clients get documents, as on the command line. An object is identified by module and name of its class, and only
classes of the modules listed here are decoded.
"""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from importlib import import_module
from typing import Any

from postroom.errors import ServerFailed
from postroom.model.key import KeyTexts, key_number
from postroom.model.message import Message, Stored
from postroom.model.moment import to_microseconds
from postroom.queues.leases.leased import LeasedMessage
from postroom.queues.results import Listing
from postroom.stations.procedures.inspection import ProcedureErrors, WaitingSets
from postroom.stations.queries.images import Answer as Images

MEDIA_TYPE = "application/vnd.postroom.objects+json"
_TAG, _VALUE = "$", "v"
#: The modules whose classes of values may be told.
_MODULES = frozenset(
    """
    diagnosis.finding engine.holding engine.presence engine.steps.effects engine.steps.tryout exchange.bulk
    exchange.parts exchange.message_writer exchange.xes flows.clients flows.graph.inspection flows.tryout model.body
    model.definitions model.message model.types queues.leases.leased queues.relocating queues.results
    queues.segments queues.sources queues.tree.hierarchy room.access room.catalog room.overview rules.inspection
    rules.retention rules.tryout spheres.compensation spheres.monitor spheres.sending stations.counters.definitions
    stations.counters.stage stations.forms.catalog stations.forms.drawing stations.mail.editions stations.forms.form
    stations.mail.mail stations.mail.story stations.places.network stations.procedures.catalog
    stations.procedures.definitions stations.procedures.inspection stations.procedures.tryout
    stations.queries.images stations.queries.sql stations.station store.kernel.journal store.kernel.outbox
    store.kernel.policies store.kernel.queues store.proof.mending store.proof.verification store.tables.access
    store.tables.endpoints store.tables.images store.tables.schedules store.tables.sources store.tables.types
    store.kernel.archives store.upkeep.backup
    """.split()
)
_SCALARS: dict[type, tuple[str, Callable[[Any], str], Callable[[str], Any]]] = {
    datetime: ("datetime", datetime.isoformat, datetime.fromisoformat),
    date: ("date", date.isoformat, date.fromisoformat),
    time: ("time", time.isoformat, time.fromisoformat),
    Decimal: ("decimal", str, Decimal),
    bytes: ("bytes", lambda value: base64.b64encode(value).decode(), lambda text: base64.b64decode(text)),
    timedelta: (
        "timedelta",
        lambda span: str(span // timedelta(microseconds=1)),
        lambda text: timedelta(microseconds=int(text)),
    ),
}
_READ = {name: read for name, _, read in _SCALARS.values()}


# --- to JSON ---


def encoded(value: Any) -> Any:
    """What JSON has for a value."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, Enum):
        return _tagged(_class_name(type(value)), value.value)
    if type(value) in _SCALARS:
        name, write, _ = _SCALARS[type(value)]
        return _tagged(name, write(value))
    for kind, (name, parts) in _SPECIAL.items():
        if isinstance(value, kind):
            return _tagged(name, parts(value))
    if dataclasses.is_dataclass(value) or hasattr(value, "_fields"):
        return _tagged(_class_name(type(value)), {name: encoded(getattr(value, name)) for name in _fields(type(value))})
    return _collection(value)


def _collection(value: Any) -> Any:
    if isinstance(value, tuple):
        return _tagged("tuple", [encoded(item) for item in value])
    if isinstance(value, (set, frozenset)):
        return _tagged("frozenset", [encoded(item) for item in sorted(value)])
    if isinstance(value, Mapping):
        if _TAG not in value and all(isinstance(name, str) for name in value):
            return {str(name): encoded(item) for name, item in value.items()}
        return _tagged("dict", [[encoded(name), encoded(item)] for name, item in value.items()])
    if isinstance(value, (Sequence, Iterator)) and not isinstance(value, str):
        return [encoded(item) for item in value]
    return str(value)


def _tagged(tag: str, value: Any) -> dict[str, Any]:
    return {_TAG: tag, _VALUE: value}


def _class_name(kind: type) -> str:
    module = kind.__module__.removeprefix("postroom.")
    assert module in _MODULES, f"{kind} is not told: its module is not in the list"
    return f"{module}:{kind.__name__}"


def _fields(kind: Any) -> list[str]:
    if dataclasses.is_dataclass(kind):
        return [field.name for field in dataclasses.fields(kind) if field.init]
    return list(kind._fields)


def _message(value: Message) -> list[Any]:
    return [encoded(list(value._stored)), value.corrupt, *([True] if value.blocked else [])]


def _leased(value: LeasedMessage) -> list[Any]:
    return [encoded(list(value._stored)), value.lease, value.attempts, to_microseconds(value.until), value.seconds]


def _images(value: Images) -> list[Any]:
    return [value.seq, encoded(list(value.kept)), encoded(dict(value._editions)), encoded(value.damaged)]


_SPECIAL: dict[type, tuple[str, Callable[[Any], Any]]] = {  # the first that fits
    LeasedMessage: ("leased", _leased),
    Message: ("message", _message),
    Listing: ("listing", lambda value: [[encoded(item) for item in value], value.next]),
    Images: ("images", _images),
    ProcedureErrors: ("procedure_errors", lambda value: [[encoded(item) for item in value], encoded(value.missing)]),
    WaitingSets: ("waiting", lambda value: [[encoded(item) for item in value], encoded(value.missing)]),
    KeyTexts: ("keys", lambda value: [key_number(key) for key in value]),
}


# --- and back ---


class Objects:
    """Decodes objects of a server; leased messages end their leases through ``leasing``."""

    def __init__(self, leasing: Any, bind: Callable[[Message], Message]) -> None:
        self._leasing = leasing
        self._bind = bind

    def decoded(self, told: Any) -> Any:
        if isinstance(told, list):
            return [self.decoded(item) for item in told]
        if not isinstance(told, dict):
            return told
        if _TAG not in told:
            return {name: self.decoded(item) for name, item in told.items()}
        tag: str = told[_TAG]
        value: Any = told.get(_VALUE)
        if tag in _READ:
            return _READ[tag](value)
        if tag in _MAKERS:
            return _MAKERS[tag](self, value)
        return self._instance(tag, value)

    def _instance(self, tag: str, value: Any) -> Any:
        module, _, name = tag.partition(":")
        kind = getattr(import_module(f"postroom.{module}"), name, None) if module in _MODULES else None
        if not isinstance(kind, type):
            raise ServerFailed(incident=f"it told of {tag[:80]}, which this version does not know")
        if issubclass(kind, Enum):
            return kind(value)
        known = set(_fields(kind))
        return kind(**{name: self.decoded(item) for name, item in value.items() if name in known})

    def message(self, value: Any) -> Message:
        stored, corrupt, *blocked = value
        return self._bind(Message(Stored(*self.decoded(stored)), corrupt, bool(blocked)))

    def leased(self, value: Any) -> LeasedMessage:
        stored, lease, attempts, until, seconds = value
        about = {"lease": lease, "attempts": attempts, "until": until, "seconds": seconds}
        message = LeasedMessage(Stored(*self.decoded(stored)), self._leasing, **about)
        self._bind(message)
        return message

    def listing(self, value: Any) -> Listing:
        told, next = value
        messages = [self.decoded(item) for item in told]
        return Listing(lambda: iter(messages), next)

    def images(self, value: Any) -> Images:
        seq, kept, editions, damaged = value
        return Images(seq, self.decoded(kept), self.decoded(editions), self.decoded(damaged))

    def waiting(self, value: Any) -> WaitingSets:
        sets, missing = value
        return WaitingSets(self.decoded(sets), missing)

    def procedure_errors(self, value: Any) -> ProcedureErrors:
        errors, missing = value
        return ProcedureErrors(self.decoded(errors), missing)


_MAKERS: dict[str, Callable[[Objects, Any], Any]] = {
    "tuple": lambda objects, value: tuple(objects.decoded(value)),
    "frozenset": lambda objects, value: frozenset(objects.decoded(value)),
    "dict": lambda objects, value: {objects.decoded(name): objects.decoded(item) for name, item in value},
    "keys": lambda objects, value: KeyTexts(value),
    "leased": Objects.leased,
    "message": Objects.message,
    "listing": Objects.listing,
    "images": Objects.images,
    "waiting": Objects.waiting,
    "procedure_errors": Objects.procedure_errors,
}
