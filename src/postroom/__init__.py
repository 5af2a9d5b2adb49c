"""Postroom: structured messages in transactional queues.

The public list. Everything else may change freely.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from postroom.version import __version__

if TYPE_CHECKING:
    from postroom import errors
    from postroom.diagnosis.finding import Finding
    from postroom.engine.language import TrialResult
    from postroom.engine.runner import Totals
    from postroom.engine.steps.tryout import Tried
    from postroom.errors import PostroomError
    from postroom.exchange.bulk import SentFile
    from postroom.exchange.message_writer import MessageFile
    from postroom.exchange.xes import EventLog
    from postroom.flows.clients import Subscription
    from postroom.flows.graph.inspection import ArcExplained, GraphShown
    from postroom.flows.streams.totals import StreamTotals
    from postroom.interfaces.opening import open
    from postroom.model.body import Format
    from postroom.model.definitions import Loaded
    from postroom.model.message import Membership, Message
    from postroom.model.tables import Table
    from postroom.model.types import Field, Kind, MessageType
    from postroom.queues.hierarchy import Level
    from postroom.queues.leased import Leased, LeasedMessage, LeaseShown
    from postroom.queues.relocating import Relocated
    from postroom.queues.results import Accepted, Distributed, Held, Listing, Received, Sent, SentMany
    from postroom.queues.sessions import QueueSession
    from postroom.queues.sources import SourceShown
    from postroom.queues.working import Progress, Workers
    from postroom.room import Postroom, QueueHandle
    from postroom.room.access import TokenShown
    from postroom.room.catalog import CatalogEntry, CatalogVersion
    from postroom.room.client import Client
    from postroom.room.identity import Identity
    from postroom.room.overview import Overview
    from postroom.rules.inspection import Explanation
    from postroom.rules.retention import Retained
    from postroom.spheres.compensation import Checked, Compensator
    from postroom.spheres.machine import MachineHandle
    from postroom.spheres.monitor import SphereShown, SphereTold
    from postroom.spheres.sending import Compensation, SphereSent
    from postroom.spheres.sphere import Sphere
    from postroom.stations.counters.stage import CounterShown
    from postroom.stations.forms.catalog import Edition, Forms
    from postroom.stations.forms.functions import function
    from postroom.stations.mail.editions import Valued
    from postroom.stations.mail.mail import Shipped
    from postroom.stations.mail.story import Story
    from postroom.stations.places.network import NodeShown
    from postroom.stations.procedures.catalog import KeptProcedure
    from postroom.stations.procedures.inspection import ProcedureErrors, ProcedureExplained, WaitingSets
    from postroom.stations.queries.images import Answer, Image
    from postroom.stations.station import InventoryItem, Station, WaitingMail
    from postroom.store.kernel.archive_folder import ArchiveFolder
    from postroom.store.kernel.archives import Archive
    from postroom.store.kernel.journal import Event
    from postroom.store.kernel.outbox import Effect
    from postroom.store.kernel.policies import Policy
    from postroom.store.proof.mending import Mended
    from postroom.store.proof.verification import Verified
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
    "Distributed",
    "Edition",
    "Effect",
    "Endpoint",
    "Event",
    "EventLog",
    "Explanation",
    "Field",
    "Finding",
    "Format",
    "Forms",
    "Grant",
    "GraphShown",
    "Held",
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
    "Postroom",
    "PostroomError",
    "ProcedureErrors",
    "ProcedureExplained",
    "Progress",
    "QueueHandle",
    "QueueSession",
    "Received",
    "Relocated",
    "Retained",
    "Schedule",
    "Sent",
    "SentFile",
    "SentMany",
    "Shipped",
    "Source",
    "SourceShown",
    "Sphere",
    "SphereSent",
    "SphereShown",
    "SphereTold",
    "Station",
    "Story",
    "StreamTotals",
    "Subscription",
    "Table",
    "TokenShown",
    "Totals",
    "TrialResult",
    "Tried",
    "TypeVersion",
    "Valued",
    "Verified",
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
    "Accepted": "queues.results",
    "Answer": "stations.queries.images",
    "ArcExplained": "flows.graph.inspection",
    "Archive": "store.kernel.archives",
    "ArchiveFolder": "store.kernel.archive_folder",
    "BackedUp": "store.upkeep.backup",
    "CatalogEntry": "room.catalog",
    "CatalogVersion": "room.catalog",
    "Checked": "spheres.compensation",
    "Client": "room.client",
    "Compensation": "spheres.sending",
    "Compensator": "spheres.compensation",
    "CounterShown": "stations.counters.stage",
    "Distributed": "queues.results",
    "Edition": "stations.forms.catalog",
    "Effect": "store.kernel.outbox",
    "Event": "store.kernel.journal",
    "EventLog": "exchange.xes",
    "Explanation": "rules.inspection",
    "Field": "model.types",
    "Finding": "diagnosis.finding",
    "Format": "model.body",
    "Forms": "stations.forms.catalog",
    "GraphShown": "flows.graph.inspection",
    "Held": "queues.results",
    "Image": "stations.queries.images",
    "ImageTable": "store.tables.images",
    "InventoryItem": "stations.station",
    "KeptProcedure": "stations.procedures.catalog",
    "Kind": "model.types",
    "Level": "queues.hierarchy",
    "Listing": "queues.results",
    "Loaded": "model.definitions",
    "MachineHandle": "spheres.machine",
    "Membership": "model.message",
    "Mended": "store.proof.mending",
    "Message": "model.message",
    "MessageFile": "exchange.message_writer",
    "MessageType": "model.types",
    "NodeShown": "stations.places.network",
    "Overview": "room.overview",
    "Postroom": "room",
    "PostroomError": "errors",
    "ProcedureErrors": "stations.procedures.inspection",
    "ProcedureExplained": "stations.procedures.inspection",
    "QueueHandle": "room",
    "Workers": "queues.working",
    "Relocated": "queues.relocating",
    "QueueSession": "queues.sessions",
    "Source": "store.tables.sources",
    "SourceShown": "queues.sources",
    "Progress": "queues.working",
    "Policy": "store.kernel.policies",
    "LeaseShown": "queues.leased",
    "LeasedMessage": "queues.leased",
    "Leased": "queues.leased",
    "Received": "queues.results",
    "Retained": "rules.retention",
    "Sent": "queues.results",
    "SentFile": "exchange.bulk",
    "SentMany": "queues.results",
    "Shipped": "stations.mail.mail",
    "Sphere": "spheres.sphere",
    "SphereSent": "spheres.sending",
    "SphereShown": "spheres.monitor",
    "SphereTold": "spheres.monitor",
    "Station": "stations.station",
    "Story": "stations.mail.story",
    "StreamTotals": "flows.streams.totals",
    "Subscription": "flows.clients",
    "Table": "model.tables",
    "Totals": "engine.runner",
    "TrialResult": "engine.language",
    "Tried": "engine.steps.tryout",
    "TypeVersion": "store.tables.types",
    "Valued": "stations.mail.editions",
    "Verified": "store.proof.verification",
    "WaitingMail": "stations.station",
    "WaitingSets": "stations.procedures.inspection",
    "function": "stations.forms.functions",
    "open": "interfaces.opening",
    "Endpoint": "store.tables.endpoints",
    "Grant": "store.tables.access",
    "Identity": "room.identity",
    "Schedule": "store.tables.schedules",
    "TokenShown": "room.access",
}


if not TYPE_CHECKING:  # else a type checker would take every name for one of ours

    def __getattr__(name: str) -> Any:
        if name == "errors":
            return import_module("postroom.errors")
        if name not in _HOME:
            raise AttributeError(f"module 'postroom' has no attribute {name!r}")
        value = getattr(import_module(f"postroom.{_HOME[name]}"), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
