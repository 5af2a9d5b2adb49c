"""The definition languages of a room. A new one is a class in ``loading.py`` of its capability, and one line here."""

from __future__ import annotations

from postroom.engine.language import Language
from postroom.flows.loading import FlowLanguage
from postroom.queues.tree.loading import QueueLanguage
from postroom.rules.loading import RuleLanguage
from postroom.stations.loading import FormLanguage
from postroom.stations.places.network import Network
from postroom.stations.procedures.interpreter import Interpreter


def languages(network: Network | None = None, interpreter: Interpreter | None = None) -> tuple[Language, ...]:
    """In the order of loading: what comes later may refer to what came before. Reading files needs no room."""
    return (
        QueueLanguage(),
        FormLanguage(network, interpreter),
        FlowLanguage(),
        RuleLanguage(),
    )
