"""Runs of the simulator: sound by many numbers, the same by the same number, and not sound where a bug is planted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.simulation.simulator import SimulatedStore, World, Wrong, run

from postroom.model.key import key_number
from postroom.queues.verbs import Verbs
from postroom.store.kernel import receipts
from postroom.store.kernel.deliveries import Deliveries
from postroom.store.kernel.messages import Messages
from postroom.store.kernel.transaction import Transaction
from postroom.store.sqlite import express
from postroom.store.sqlite.store import SqliteStore
from postroom.store.tables.schedules import Schedules

SLICE = range(40)


@pytest.mark.parametrize(
    "seeds", [SLICE, pytest.param(range(1000, 2000), marks=pytest.mark.slow)], ids=["slice", "whole"]
)
def test_the_room_is_as_the_model_says_whatever_is_killed_or_fails(seeds: range, tmp_path: Path) -> None:
    met: Counter[str] = Counter()
    for seed in seeds:
        world = World(seed, tmp_path)
        try:
            world.run()
        except Wrong as error:
            raise AssertionError(f"python -m tests.simulation.run --seed {seed} --log: {error}") from error
        finally:
            for file in tmp_path.iterdir():
                file.unlink()
        met.update(line.split(" ", 1)[1] for line in world.log)
        met["kills"] += world.kills
    assert met["kills"] > len(seeds) / 2
    for what in ("StoreBusy no", "CommitUnknown unknown", "FaultInjected no", "parked", "answer None", "LeaseOver"):
        assert met[what], f"no run met {what}"
    for label in ("send", "send-many", "distribute", "receive", "hand-out", "done", "release", "extend", "fail"):
        assert all(met[f"{label}.{moment}"] for moment in ("begun", "committing", "committed"))


@pytest.mark.parametrize("seed", [3, 17, 29])
def test_the_same_number_is_the_same_run(seed: int, tmp_path: Path) -> None:
    first, second = (run(seed, _folder(tmp_path, name)) for name in ("first", "second"))
    assert first.log == second.log
    assert first.hash == second.hash
    assert first.now == second.now
    assert run(seed + 1, tmp_path).hash != first.hash


def _folder(path: Path, name: str) -> Path:
    (path / name).mkdir()
    return path / name


# --- planted bugs: each must be found, and by the same number again ---


def _acknowledges_too_early(patch: pytest.MonkeyPatch) -> None:
    """Every fifth commit is said to be done, and is rolled back."""
    real, count = SqliteStore._commit, [0]

    def commit(self: SqliteStore) -> None:
        count[0] += 1
        self.session.execute("ROLLBACK") if count[0] % 5 == 0 else real(self)

    patch.setattr(SqliteStore, "_commit", commit)


def _wakes_nobody(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SimulatedStore, "_wake_after_commit", lambda self, lines=None: None)


def _gives_the_newest_first(patch: pytest.MonkeyPatch) -> None:
    """In the express lane alone."""
    newest = express._NEXT_ONE
    for old, new in (("i.position LIMIT 1", "i.position DESC LIMIT 1"), ("AND m.number <= q.departed + 1", "")):
        assert old in newest
        newest = newest.replace(old, new)
    patch.setattr(express, "_NEXT_ONE", newest)


def _gives_it_to_two(patch: pytest.MonkeyPatch) -> None:
    """A message is read before the transaction that takes it: two may have read the same."""
    patch.setattr(Messages, "take", lambda self, queue, stored: None)


def _forgets_receipts(patch: pytest.MonkeyPatch) -> None:
    """A send that is repeated by its key is sent again."""
    patch.setattr(receipts.Receipts, "find", lambda self, name, fingerprint: None)
    patch.setattr(receipts.Receipts, "add", lambda self, *words: None)


def _commits_halves(patch: pytest.MonkeyPatch) -> None:
    """A message to two queues is two transactions."""
    real = Verbs.distribute

    def distribute(self: Verbs, destinations: Any, *given: Any, **options: Any) -> Any:
        return [real(self, [each], *given, **options) for each in destinations][-1]

    patch.setattr(Verbs, "distribute", distribute)


def _ends_a_lease_that_is_over(patch: pytest.MonkeyPatch) -> None:
    """A late end is not refused: it ends the lease that another has on the message now."""
    real = Deliveries._ended

    def ended(self: Deliveries, fence: int) -> Any:
        event = self._journal.at(fence)
        key = None if event is None or event.key is None else key_number(event.key)
        now = next((lease for lease in self.all() if lease.message == key), None)
        return real(self, fence if now is None else now.fence)

    patch.setattr(Deliveries, "_ended", ended)


def _counts_a_release_as_an_attempt(patch: pytest.MonkeyPatch) -> None:
    real = Deliveries._give_back

    def give_back(self: Deliveries, queue: Any, stored: Any, details: Any, verb: str, *words: Any) -> None:
        more = details._replace(attempts=details.attempts + (verb == "release"))
        real(self, queue, stored, more, verb, *words)

    patch.setattr(Deliveries, "_give_back", give_back)


def _lets_leases_run_on(patch: pytest.MonkeyPatch) -> None:
    """What nobody ends is never given back."""
    patch.setattr(Deliveries, "lapse", lambda self, queue, owners: [])


def _wakes_nobody_of_a_line(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Transaction, "wake_next", lambda self, queue, count=1: self.lines.setdefault(queue, 0))


def _forgets_who_waits_for_its_key(patch: pytest.MonkeyPatch) -> None:
    """An urgent one that comes back finds an earlier one of its key that waits for its sake, and waits for it."""
    patch.setattr(Deliveries, "make_way", Deliveries.block)


def _fires_twice(patch: pytest.MonkeyPatch) -> None:
    """A schedule does not look whether another was first."""
    patch.setattr(Schedules, "move_on", lambda self, schedule, due: True)


PLANTED = [
    _ends_a_lease_that_is_over,
    _counts_a_release_as_an_attempt,
    _lets_leases_run_on,
    _wakes_nobody_of_a_line,
    _forgets_who_waits_for_its_key,
    _fires_twice,
    _acknowledges_too_early,
    _wakes_nobody,
    _gives_the_newest_first,
    _gives_it_to_two,
    _forgets_receipts,
    _commits_halves,
]


#: One that few runs meet; which they are may change with what clients are told to do.
RARE: dict[Callable[[pytest.MonkeyPatch], None], range] = {_ends_a_lease_that_is_over: range(60, 200)}


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__.strip("_").replace("_", " "))
def test_a_planted_bug_is_found_and_found_again(plant: Callable[[pytest.MonkeyPatch], None], tmp_path: Path) -> None:
    found = []
    for seed in RARE.get(plant, SLICE):
        with pytest.MonkeyPatch.context() as patch:
            plant(patch)
            try:
                run(seed, tmp_path)
            except Wrong as error:
                found.append((seed, str(error)))
                break
    assert found, "no run has found it"
    (seed, said), again = found[0], _folder(tmp_path, "again")
    with pytest.MonkeyPatch.context() as patch:
        plant(patch)
        with pytest.raises(Wrong) as caught:
            run(seed, again)
    assert str(caught.value) == said
