"""One micro-batch: Spark runs the arcs without state, then come those with state, and last the output."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from postroom.errors import GatewayUnknown
from postroom.flows.evaluation.folding import Fold
from postroom.flows.evaluation.states import StoredStates
from postroom.flows.graph.streamed import sources
from postroom.flows.language.outside import CONSOLE, FILES, Outside
from postroom.flows.streams.delivering import Staged, dead_letter, deliver_files, lines_of, staged, stem_of
from postroom.flows.streams.frames import DOUBTFUL, FAILED, TAB, UNFIT, BatchFrames, folder_of, goal_name
from postroom.flows.streams.ledger import Done, Pinned
from postroom.flows.streams.routing import Ends, Refused, Router
from postroom.limits import STREAM_STATES_READ
from postroom.store.kernel.base import Store
from postroom.store.tables.endpoints import Endpoint

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_GONE = "the space was removed while its events were read"


@dataclass(frozen=True)
class Places:
    """Where a stream writes, as the operator has set it."""

    folder: Path  # of its checkpoint
    endpoints: Mapping[str, Endpoint]
    dead_letters: Outside | None  # None: error messages of the room
    show: Callable[[str, str], None]  # a line of a space, on the console
    to_kafka: Callable[[Any, Outside, Endpoint, Sequence[str]], None]


class MicroBatch:
    def __init__(self, store: Store, pinned: Pinned, came: DataFrame, of: Sequence[str], places: Places) -> None:
        self._store = store
        self._stream, self._graph = pinned
        self._came = came
        self._of = of  # the spaces that this stream reads
        self._places = places
        self._ends = Ends(self._graph)
        self._staging = places.folder / "staging" / f"{self._stream.batch:08}"
        known = [name for name in sources(self._graph.running) if name in of]
        self._frames = BatchFrames(came.sparkSession, self._graph, known, self._lines_only())

    def run(self) -> Done:
        """Process the batch and write its output; the room changes when it is done."""
        shutil.rmtree(self._staging, ignore_errors=True)
        try:
            return self._run()
        finally:
            shutil.rmtree(self._staging, ignore_errors=True)

    def _run(self) -> Done:
        passes = self._staged_passes()
        refused = [*self._unfit(passes), *self._failed(passes), *self._left_over()]
        router, states = self._routed(passes)
        refused += router.refused
        done = Done(states, figures={"refused": len(refused)})
        for name, space in self._graph.running.spaces.items():
            files = [file for folder in passes for file in staged(folder, goal_name(name))]
            bodies = router.made.get(name, [])
            if self._ends.stored(name) and bodies:
                done.stored[name] = bodies
            if space.sink is not None and (files or bodies):
                given = Staged(files if name in self._frames.lines else (), bodies)
                done.figures["delivered"] = done.figures.get("delivered", 0) + self._bring(name, space.sink, given)
        done.figures["stored"] = sum(map(len, done.stored.values()))
        self._tell(refused, done)
        return done

    def _lines_only(self) -> frozenset[str]:
        """The spaces whose events Spark writes as they are, because they only go to a sink."""
        return frozenset(
            name
            for name, space in self._graph.running.spaces.items()
            if space.sink is not None and not self._ends.stored(name)
        )

    # --- Spark ---

    def _staged_passes(self) -> list[Path]:
        """Spark's output for the batch: first the lines that certainly fit, then those that Python parsed."""
        if not self._frames.sources:
            return []
        first, second = self._staging / "first", self._staging / "second"
        _write(self._frames.delivered(self._came), first)
        looked = []
        for place in range(len(self._frames.sources)):
            files = staged(first, f"{DOUBTFUL}-{place}")
            if files:
                lines = self._came.sparkSession.read.text([str(file) for file in files])
                _write(self._frames.admitted(lines, place), second / str(place))
                looked.append(second / str(place))
        return [first, *looked]

    def _unfit(self, passes: Sequence[Path]) -> Iterator[Refused]:
        for place, space in enumerate(self._frames.sources):
            for folder in passes:
                for line in sorted(lines_of(staged(folder, f"{UNFIT}-{place}"))):
                    _, why, *rest = line.split(TAB, 2)
                    yield Refused(space, why, rest[0] if rest else "")

    def _failed(self, passes: Sequence[Path]) -> Iterator[Refused]:
        """The events at which an arc failed. Their bodies are only read if there are any."""
        for place, space in enumerate(self._frames.sources):
            broken = [line.split(TAB, 2) for folder in passes for line in lines_of(staged(folder, f"{FAILED}-{place}"))]
            if not broken:
                continue
            bodies = self._frames.bodies(self._came, place, sorted({number for number, _, _ in broken}))
            for number, arc, why in sorted(broken):
                yield Refused(space, why, bodies.get(number, ""), arc)

    def _left_over(self) -> Iterator[Refused]:
        """Events of a space that has no source any more in the version of the batch."""
        gone = [name for name in self._of if name not in self._frames.sources]
        if gone:
            for row in self._came.where(self._came.space.isin(gone)).select("space", "body").toLocalIterator():
                yield Refused(row.space, _GONE, row.body or "")

    # --- states ---

    def _routed(self, passes: Sequence[Path]) -> tuple[Router, list[StoredStates]]:
        """Route what arrives in the room or at arcs with state, in order."""
        wanted = {goal_name(name): (name, False) for name in self._graph.keeping if name not in self._frames.lines}
        wanted |= {f"root-{place}": (name, True) for place, name in enumerate(self._frames.sources)}
        events = []
        for folder in passes:
            for goal, (space, root) in wanted.items():
                for line in lines_of(staged(folder, goal)):
                    number, place, rows, body = line.split(TAB, 3)
                    events.append((number, place, rows, space, root, body))
        events.sort(key=itemgetter(0, 1, 2))

        def work(tx: Any) -> tuple[Router, list[StoredStates]]:
            states: list[StoredStates] = []

            def begin(name: str, fold: Fold) -> StoredStates:
                states.append(StoredStates(tx.arc_states, name, fold))
                states[-1].read(STREAM_STATES_READ)
                return states[-1]

            router = Router(self._graph, begin)
            router.lead((space, body, root) for _, _, _, space, root, body in events)
            return router, states

        return self._store.read(work)

    # --- outside ---

    def _bring(self, name: str, sink: Outside, given: Staged) -> int:
        if sink.kind == FILES:
            folder = folder_of(sink, self._endpoint(sink).settings)
            type = self._graph.running.spaces[name].type
            return deliver_files(folder, self._stem(name), sink, type, given)
        lines = list(given)
        if sink.kind == CONSOLE:
            for line in lines:
                self._places.show(name, line)
        else:
            self._places.to_kafka(self._came.sparkSession, sink, self._endpoint(sink), lines)
        return len(lines)

    def _tell(self, refused: Sequence[Refused], done: Done) -> None:
        """Write dead letters: to a sink, or as error messages of the room."""
        if self._places.dead_letters is None:
            done.errors = refused
        elif refused:
            sink = self._places.dead_letters
            about = {"stream": self._stream.name, "batch": self._stream.batch, "version": self._stream.version}
            lines = [dead_letter(refusal, about) for refusal in refused]
            folder = folder_of(sink, self._endpoint(sink).settings)
            deliver_files(folder, self._stem(f"refused-{self._stream.name}"), sink, _ANY, Staged(more=lines))

    def _endpoint(self, sink: Outside) -> Endpoint:
        endpoint = self._places.endpoints.get(sink.gateway)
        if endpoint is None:  # removed since the version of this batch
            raise GatewayUnknown(gateway=sink.gateway, nearest="")
        return endpoint

    def _stem(self, name: str) -> str:
        return stem_of(name, self._stream.checkpoint, self._stream.batch)


_ANY: Any = None  # lines of JSON have any type


def _write(frame: DataFrame, folder: Path) -> None:
    frame.write.partitionBy("goal").text(str(folder))
