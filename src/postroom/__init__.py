"""Postroom: structured messages in transactional queues.

The public list. Everything else may change freely.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from postroom.version import __version__

if TYPE_CHECKING:
    from postroom import aio as aio
    from postroom import errors
    from postroom import http as http
    from postroom.diagnosis.finding import Finding, Severity
    from postroom.engine.holding import EngineSeen
    from postroom.engine.language import TrialResult
    from postroom.engine.presence import EngineState, Presence
    from postroom.engine.runner import Totals
    from postroom.engine.steps.tryout import Tried
    from postroom.errors import PostroomError
    from postroom.exchange.bulk import SentFile, SentParts
    from postroom.exchange.message_writer import MessageFile
    from postroom.exchange.parts import FilePart
    from postroom.exchange.xes import EventLog
    from postroom.flows.clients import Subscription
    from postroom.flows.graph.inspection import ArcExplained, ArcShown, GraphShown, SpaceShown, TableShown
    from postroom.flows.streams.totals import StreamTotals
    from postroom.interfaces.opening import open
    from postroom.model.body import Format
    from postroom.model.definitions import Loaded
    from postroom.model.message import Membership, Message
    from postroom.model.tables import Table
    from postroom.model.types import Field, Kind, MessageType
    from postroom.queues.leases.leased import FailedAttempt, Leased, LeasedMessage, LeaseShown
    from postroom.queues.leases.working import Progress, Workers
    from postroom.queues.relocating import Relocated
    from postroom.queues.results import (
        Accepted,
        Delivery,
        Distributed,
        Held,
        Listing,
        QueueCount,
        Received,
        Sent,
        SentMany,
    )
    from postroom.queues.segments import End, Portion
    from postroom.queues.sessions import QueueSession
    from postroom.queues.sources import SourceShown
    from postroom.queues.tree.hierarchy import Level
    from postroom.room import Postroom
    from postroom.room.access import TokenShown
    from postroom.room.catalog import CatalogEntry, CatalogVersion
    from postroom.room.client import Client
    from postroom.room.identity import Identity
    from postroom.room.overview import Overview, QueueSeen, StepSeen
    from postroom.room.queues import QueueHandle
    from postroom.rules.inspection import Explanation
    from postroom.rules.retention import Retained
    from postroom.spheres.compensation import Checked, Compensator
    from postroom.spheres.machine import MachineHandle
    from postroom.spheres.monitor import SendShown, SphereShown, SphereTold
    from postroom.spheres.sending import Compensation, SphereSent
    from postroom.spheres.sphere import Sphere
    from postroom.stations.counters.stage import CounterShown
    from postroom.stations.forms.catalog import Edition, Forms
    from postroom.stations.forms.functions import function
    from postroom.stations.mail.editions import Valued
    from postroom.stations.mail.mail import Shipped
    from postroom.stations.mail.story import Story, StoryMessage
    from postroom.stations.places.network import NodeShown
    from postroom.stations.procedures.catalog import KeptProcedure
    from postroom.stations.procedures.inspection import (
        ProcedureErrors,
        ProcedureExplained,
        ProcedureFailed,
        Waiting,
        WaitingSets,
    )
    from postroom.stations.queries.images import Answer, Image
    from postroom.stations.queries.sql import SqlResult
    from postroom.stations.station import InventoryItem, Station, WaitingMail
    from postroom.store.kernel.archive_folder import ArchiveFolder
    from postroom.store.kernel.archives import Archive
    from postroom.store.kernel.journal import Event
    from postroom.store.kernel.outbox import Effect
    from postroom.store.kernel.policies import Policy
    from postroom.store.kernel.queues import Hold
    from postroom.store.proof.mending import Mended
    from postroom.store.proof.verification import Difference, Verified
    from postroom.store.tables.access import Grant
    from postroom.store.tables.endpoints import Endpoint
    from postroom.store.tables.images import ImageTable
    from postroom.store.tables.schedules import Schedule
    from postroom.store.tables.sources import Source
    from postroom.store.tables.types import TypeVersion
    from postroom.store.upkeep.backup import BackedUp

__all__ = [
    "Accepted",
    "Answer",
    "ArcExplained",
    "ArcShown",
    "Archive",
    "ArchiveFolder",
    "BackedUp",
    "CatalogEntry",
    "CatalogVersion",
    "Checked",
    "Client",
    "Compensation",
    "Compensator",
    "CounterShown",
    "Delivery",
    "Difference",
    "Distributed",
    "Edition",
    "Effect",
    "End",
    "Endpoint",
    "EngineSeen",
    "EngineState",
    "Event",
    "EventLog",
    "Explanation",
    "FailedAttempt",
    "Field",
    "FilePart",
    "Finding",
    "Format",
    "Forms",
    "Grant",
    "GraphShown",
    "Held",
    "Hold",
    "Identity",
    "Image",
    "ImageTable",
    "InventoryItem",
    "KeptProcedure",
    "Kind",
    "LeaseShown",
    "Leased",
    "LeasedMessage",
    "Level",
    "Listing",
    "Loaded",
    "MachineHandle",
    "Membership",
    "Mended",
    "Message",
    "MessageFile",
    "MessageType",
    "NodeShown",
    "Overview",
    "Policy",
    "Portion",
    "Postroom",
    "PostroomError",
    "Presence",
    "ProcedureErrors",
    "ProcedureExplained",
    "ProcedureFailed",
    "Progress",
    "QueueCount",
    "QueueHandle",
    "QueueSeen",
    "QueueSession",
    "Received",
    "Relocated",
    "Retained",
    "Schedule",
    "SendShown",
    "Sent",
    "SentFile",
    "SentMany",
    "SentParts",
    "Severity",
    "Shipped",
    "Source",
    "SourceShown",
    "SpaceShown",
    "Sphere",
    "SphereSent",
    "SphereShown",
    "SphereTold",
    "SqlResult",
    "Station",
    "StepSeen",
    "Story",
    "StoryMessage",
    "StreamTotals",
    "Subscription",
    "Table",
    "TableShown",
    "TokenShown",
    "Totals",
    "TrialResult",
    "Tried",
    "TypeVersion",
    "Valued",
    "Verified",
    "Waiting",
    "WaitingMail",
    "WaitingSets",
    "Workers",
    "__version__",
    "errors",
    "function",
    "open",
]

#: Where each name is. It is imported when it is first asked for: ``postroom --help`` needs none of them.
_HOME = {
    name: module
    for module, names in {
        "diagnosis.finding": "Finding Severity",
        "engine.holding": "EngineSeen",
        "engine.language": "TrialResult",
        "engine.presence": "EngineState Presence",
        "engine.runner": "Totals",
        "engine.steps.tryout": "Tried",
        "errors": "PostroomError",
        "exchange.bulk": "SentFile SentParts",
        "exchange.message_writer": "MessageFile",
        "exchange.parts": "FilePart",
        "exchange.xes": "EventLog",
        "flows.clients": "Subscription",
        "flows.graph.inspection": "ArcExplained ArcShown GraphShown SpaceShown TableShown",
        "flows.streams.totals": "StreamTotals",
        "interfaces.opening": "open",
        "model.body": "Format",
        "model.definitions": "Loaded",
        "model.message": "Membership Message",
        "model.tables": "Table",
        "model.types": "Field Kind MessageType",
        "queues.leases.leased": "FailedAttempt LeaseShown Leased LeasedMessage",
        "queues.leases.working": "Progress Workers",
        "queues.relocating": "Relocated",
        "queues.results": "Accepted Delivery Distributed Held Listing QueueCount Received Sent SentMany",
        "queues.segments": "End Portion",
        "queues.sessions": "QueueSession",
        "queues.sources": "SourceShown",
        "queues.tree.hierarchy": "Level",
        "room": "Postroom",
        "room.access": "TokenShown",
        "room.catalog": "CatalogEntry CatalogVersion",
        "room.client": "Client",
        "room.identity": "Identity",
        "room.overview": "Overview QueueSeen StepSeen",
        "room.queues": "QueueHandle",
        "rules.inspection": "Explanation",
        "rules.retention": "Retained",
        "spheres.compensation": "Checked Compensator",
        "spheres.machine": "MachineHandle",
        "spheres.monitor": "SendShown SphereShown SphereTold",
        "spheres.sending": "Compensation SphereSent",
        "spheres.sphere": "Sphere",
        "stations.counters.stage": "CounterShown",
        "stations.forms.catalog": "Edition Forms",
        "stations.forms.functions": "function",
        "stations.mail.editions": "Valued",
        "stations.mail.mail": "Shipped",
        "stations.mail.story": "Story StoryMessage",
        "stations.places.network": "NodeShown",
        "stations.procedures.catalog": "KeptProcedure",
        "stations.procedures.inspection": "ProcedureErrors ProcedureExplained ProcedureFailed Waiting WaitingSets",
        "stations.queries.images": "Answer Image",
        "stations.queries.sql": "SqlResult",
        "stations.station": "InventoryItem Station WaitingMail",
        "store.kernel.archive_folder": "ArchiveFolder",
        "store.kernel.archives": "Archive",
        "store.kernel.journal": "Event",
        "store.kernel.outbox": "Effect",
        "store.kernel.policies": "Policy",
        "store.kernel.queues": "Hold",
        "store.proof.mending": "Mended",
        "store.proof.verification": "Difference Verified",
        "store.tables.access": "Grant",
        "store.tables.endpoints": "Endpoint",
        "store.tables.images": "ImageTable",
        "store.tables.schedules": "Schedule",
        "store.tables.sources": "Source",
        "store.tables.types": "TypeVersion",
        "store.upkeep.backup": "BackedUp",
    }.items()
    for name in names.split()
}

#: Modules of users, imported when they are first asked for: ``postroom.http.app(room)`` needs no import of its own.
_MODULES = ("aio", "errors", "http")

if not TYPE_CHECKING:  # else a type checker would take every name for one of ours

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            return import_module(f"postroom.{name}")
        if name not in _HOME:
            raise AttributeError(f"module 'postroom' has no attribute {name!r}")
        value = getattr(import_module(f"postroom.{_HOME[name]}"), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
