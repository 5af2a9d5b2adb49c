"""The rules' part in the engine's steps."""

from __future__ import annotations

from collections.abc import Collection

from postroom.engine.steps.stage import Share
from postroom.engine.steps.watching import WatchingStage
from postroom.rules.catalog import Programs
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
