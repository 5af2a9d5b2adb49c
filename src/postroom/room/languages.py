"""The definition languages of a room. A new one is a class in ``loading.py`` of its capability, and an entry here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from postroom.engine.language import Definitions, Language
from postroom.store.kernel.transaction import Transaction

if TYPE_CHECKING:
    from postroom.stations.places.network import Network
    from postroom.stations.procedures.interpreter import Interpreter

    Office = Callable[[], tuple[Network, Interpreter]]


class Later:
    """A language that is imported when a file of it is read: most loads have files of one."""

    def __init__(self, suffix: str, others: tuple[str, ...], defines: str, make: Callable[[], Language]) -> None:
        self.suffix, self.others, self.defines = suffix, others, defines
        self.make = make

    def read(self, files: Sequence[Path]) -> Definitions:
        return self.make().read(files)

    def printed(self, tx: Transaction, version: int | None = None) -> dict[str, bytes]:
        return self.make().printed(tx, version)


def languages(office: Office | None = None) -> tuple[Later, ...]:
    """In the order of loading: what comes later may refer to what came before. Reading files needs no room."""
    return (
        Later(".qdl", (), "queue descriptions", _queues),
        Later(".form", (), "types, procedures, counters", lambda: _forms(office)),
        Later(".flow", (), "flow graphs", _flows),
        Later(".demaq", (".xqm",), "rule programs", _rules),
    )


def _queues() -> Language:
    from postroom.queues.tree.loading import QueueLanguage

    return QueueLanguage()


def _forms(office: Office | None) -> Language:
    from postroom.stations.loading import FormLanguage

    return FormLanguage() if office is None else FormLanguage(*office())


def _flows() -> Language:
    from postroom.flows.loading import FlowLanguage

    return FlowLanguage()


def _rules() -> Language:
    from postroom.rules.loading import RuleLanguage

    return RuleLanguage()
