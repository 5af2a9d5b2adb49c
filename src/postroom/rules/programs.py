"""The program in force: read from the store, and compiled on demand, once for each version."""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import TYPE_CHECKING

from postroom.model.xmltext import without_declaration
from postroom.rules.language.definitions import KIND, Program, from_catalog
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.definitions import COLLECTION
from postroom.store.tables.spheres import ABORTING
from postroom.store.tables.types import all_types

if TYPE_CHECKING:
    from postroom.rules.compilation.plan import Plan


class Programs:
    """The program in force, and its plan."""

    def __init__(self) -> None:
        self._mark = secrets.token_hex(4)
        self._plan: Plan | None = None
        self._read: tuple[int, Program] | None = None

    def program(self, tx: Transaction) -> Program:
        """The definitions, not compiled."""
        version, known = tx.definitions.version(), self._read
        if known is not None and known[0] == version:
            return known[1]
        program = read(tx)
        if not tx.definitions.changing:  # else it may never be
            self._read = version, program
        return program

    def plan(self, tx: Transaction) -> Plan:
        """The compiled definitions."""
        version = tx.definitions.version()
        if self._plan is None or self._plan.version != version:
            plan = planned(tx, self.program(tx), version, self._mark)
            if tx.definitions.changing:
                return plan
            self._plan = plan
        known = _known(tx)
        if known != self._plan.known:  # queues without a description come and go without a new version
            self._plan = replace(self._plan, known=known)
        return self._plan


def read(tx: Transaction, version: int | None = None) -> Program:
    return Program(tuple(from_catalog(definition) for definition in tx.definitions.of_kind(KIND, version)))


def planned(tx: Transaction, program: Program, version: int, mark: str, filled: frozenset[str] | None = None) -> Plan:
    from postroom.rules.compilation import compiler  # most who look at a program evaluate nothing

    known = _known(tx) | frozenset(program.queues)
    types, collections = all_types(tx), masters(tx)
    return compiler.compiled(program, version, mark, types=types, collections=collections, known=known, filled=filled)


def masters(tx: Transaction) -> dict[str, str]:
    """The master data of each collection, as one document."""
    return {
        master.name: f"<c>{''.join(f'<d>{without_declaration(text)}</d>' for text in master.body['documents'])}</c>"
        for master in tx.definitions.of_kind(COLLECTION)
    }


def _known(tx: Transaction) -> frozenset[str]:
    """Every queue that a rule may send to; a message for the state of aborted spheres is a vote."""
    return frozenset(tx.queues.open_names()) | {ABORTING}
