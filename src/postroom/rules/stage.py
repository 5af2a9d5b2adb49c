"""The rules' part in the engine's steps."""

from __future__ import annotations

from collections.abc import Collection

from postroom.engine.holding import Divided
from postroom.engine.steps.stage import Share
from postroom.engine.steps.watching import WatchingStage
from postroom.rules.compilation.plan import free_of
from postroom.rules.programs import Programs
from postroom.store.kernel.base import Store
from postroom.store.kernel.transaction import Transaction


class RulesStage(WatchingStage):
    def __init__(self, programs: Programs) -> None:
        self._programs = programs

    def share(self, tx: Transaction, waiting: Collection[str] = ()) -> Share | None:
        plan = self._programs.plan(tx)
        if not plan.queues and not plan.echoes:
            return None
        from postroom.rules.evaluation.share import RulesShare  # pyarrow takes half a second: only when it is needed

        return RulesShare(plan)

    def divided(self, tx: Transaction) -> Divided:
        plan = self._programs.plan(tx)
        return Divided(frozenset({*plan.queues, *plan.echoes}), free_of(plan))

    def worker_module(self, store: Store) -> str:
        plan = store.read(self._programs.plan)
        return "postroom.rules.evaluation.worker" if plan.queues or plan.echoes else ""
