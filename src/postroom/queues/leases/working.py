"""Workers: functions called with the messages of queues, several at a time, until stopped.

One thread leases messages and ends leases in batches; others call the functions. If a function returns, its message is
acknowledged; if it raises, the attempt has failed. A body that does not fit the function's type becomes a dead letter,
with the place of the error.
"""

from __future__ import annotations

import inspect
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from time import monotonic
from typing import Any, NamedTuple, TypeVar, get_type_hints

from postroom.errors import ArgumentInvalid, BodyMismatch, LeaseOver, QueueHeld, QueueLocked
from postroom.limits import WORKER_WAIT_SECONDS, WORKERS_MAX
from postroom.model.arguments import check_methods
from postroom.model.body import Format, parse_json
from postroom.model.message import Message
from postroom.model.moment import to_iso
from postroom.model.typed import fitted, types_within
from postroom.queues.leases.idleness import Idleness
from postroom.queues.leases.keeping import Keeper
from postroom.queues.leases.leased import FailedAttempt, LeasedMessage
from postroom.queues.leases.leasing import Leasing
from postroom.queues.leases.tracing import TRACE, current_trace

log = logging.getLogger("postroom.work")
_ANY_NUMBER = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
F = TypeVar("F", bound=Callable[..., Any])


def _awaited_alone(result: Any) -> None:
    import asyncio  # few functions are coroutines

    asyncio.run(_awaited(result))


class Surroundings(NamedTuple):
    """What functions may ask for besides the body, and how their coroutines are awaited."""

    rooms: tuple[object, ...] = ()  # of one of these types: that room
    messages: tuple[tuple[type[Message], Callable[[LeasedMessage], Message]], ...] = ()  # other faces of a message
    awaited: Callable[[Any], object] = _awaited_alone
    is_over: Callable[[], bool] = lambda: False  # whether coroutines can no longer be awaited


class Worker(NamedTuple):
    """A function, and the queue of its messages."""

    queue: tuple[str, ...]
    function: Callable[..., Any]
    concurrency: int
    lease: float | None

    def call(self, message: LeasedMessage, asked: Sequence[Asked], around: Surroundings) -> None:
        """Call the function with a message, or with a value of the type that it wants."""
        trace = message.properties.get(TRACE)
        token = current_trace.set(trace if isinstance(trace, str) else None)
        try:
            result = self.function(*[_given(message, one) for one in asked])
            if inspect.isawaitable(result):
                around.awaited(result)
        finally:
            current_trace.reset(token)


class Asked(NamedTuple):
    """What a parameter wants: the body as a type, the room, or the message."""

    kind: Any
    exact: bool | None = None  # of a body: whether its type has decimals, so that numbers keep their digits
    room: object = None
    face: Callable[[LeasedMessage], Message] | None = None  # of the message


@dataclass
class Progress:
    """Totals of workers since their start."""

    done: int = 0
    failed: int = 0
    dead: int = 0
    lost: int = 0
    running: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def add(self, **counts: int) -> None:
        """Add counts; thread-safe."""
        with self._lock:
            for name, count in counts.items():
                setattr(self, name, getattr(self, name) + count)

    @property
    def ended(self) -> int:
        """How many messages were ended, in any way."""
        return self.done + self.failed + self.dead + self.lost


@check_methods
class Workers:
    """Functions that work on queues. Made before the room is open, or by one."""

    def __init__(self) -> None:
        self.workers: list[Worker] = []

    def worker(self, *queue: str, concurrency: int = 1, lease: float | None = None) -> Callable[[F], F]:
        """A decorator: the function is called with messages of a queue, up to ``concurrency`` at a time.

        A parameter without a type gets the message, a ``Postroom`` the room, any other type the body as its value.
        """
        if not 1 <= concurrency <= WORKERS_MAX:
            raise ArgumentInvalid(argument="concurrency", why=f"1 to {WORKERS_MAX}")
        if not queue:
            raise ArgumentInvalid(argument="queue", why="say which queue the function works on")

        def add(function: F) -> F:
            self.workers.append(Worker(queue, function, concurrency, lease))
            return function

        return add


def check_workers(workers: Sequence[Worker], around: Surroundings) -> None:
    """Raise if there is none, or if a function wants what it cannot be given."""
    if not workers:
        raise ArgumentInvalid(argument="workers", why="there is none; decorate a function with worker(QUEUE)")
    for worker in workers:
        _asked(worker.function, around)


class Pool:
    """Runs workers until it is stopped, or until nothing is left."""

    def __init__(
        self,
        leasing: Leasing,
        keeper: Keeper,
        workers: list[Worker],
        tick: Callable[[], int],
        around: Surroundings,
    ) -> None:
        self._leasing = leasing
        self._around = around
        self._tick = tick  # sends what schedules have due, and says how much it was
        self._keeper = keeper
        self._workers = workers
        self._stop = threading.Event()
        self.progress = Progress()

    def stop(self) -> None:
        """Lease nothing more, and end when running calls have ended. May be called by a signal handler or a thread."""
        self._stop.set()

    def run(self, *, until_idle: bool = False, report: Callable[[Progress], None] | None = None) -> Progress:
        """Work until stopped; with ``until_idle`` until no queue of theirs has anything to deliver now."""
        check_workers(self._workers, self._around)
        if until_idle:
            self._tick()
        self._work(until_idle, report)
        while until_idle and not self._stop.is_set() and self._tick():  # a schedule was due meanwhile
            self._work(until_idle, report)
        return self.progress

    def _work(self, until_idle: bool, report: Callable[[Progress], None] | None) -> None:
        lanes = [
            _Lane(worker, self._leasing, self._keeper, self.progress, self._stop, self._around)
            for worker in self._workers
        ]
        idleness = Idleness(len(lanes)) if until_idle else None
        threads = [
            threading.Thread(target=lane.run, args=(idleness,), name=f"worker {n}") for n, lane in enumerate(lanes)
        ]
        try:
            for thread in threads:
                thread.start()
            self._watch(lanes, until_idle, report)
        except BaseException:  # Ctrl-C, perhaps; a thread counts as ended if its join was interrupted: none is joined
            self.stop()
            for thread, lane in zip(threads, lanes, strict=True):
                while thread.is_alive() and not lane.over.wait(WORKER_WAIT_SECONDS):
                    pass
            raise
        for lane in lanes:
            if lane.error is not None:
                raise lane.error

    def _watch(self, lanes: list[_Lane], until_idle: bool, report: Callable[[Progress], None] | None) -> None:
        while not all(lane.over.is_set() for lane in lanes):
            if not until_idle and not self._stop.is_set():
                self._tick()
            for lane in lanes:
                lane.over.wait(WORKER_WAIT_SECONDS / len(lanes))
            if report is not None:
                report(self.progress)


class _Lane:
    """One running worker: leases for it, and ends its leases."""

    def __init__(
        self,
        worker: Worker,
        leasing: Leasing,
        keeper: Keeper,
        progress: Progress,
        stop: threading.Event,
        around: Surroundings,
    ) -> None:
        self._worker = worker
        self._around = around
        self._asked = _asked(worker.function, around)
        self._leasing = leasing
        self._keeper = keeper
        self._progress = progress
        self._stop = stop
        self._changed = threading.Condition()
        self._ended: list[tuple[LeasedMessage, BaseException | None]] = []
        self._running = 0
        self.error: BaseException | None = None
        self.over = threading.Event()

    def run(self, idleness: Idleness | None) -> None:
        """Work until stopped, or until all who share an ``idleness`` have nothing left."""
        try:
            self._run(idleness)
        finally:
            self.over.set()

    def _run(self, idleness: Idleness | None) -> None:
        with ThreadPoolExecutor(self._worker.concurrency, thread_name_prefix="postroom-worker") as calls:
            try:
                while self._turn(calls, idleness):
                    pass
            except BaseException as error:  # the thread that waits for this one raises it
                self.error = error
                self._stop.set()
                self._wait_for_calls()

    def _turn(self, calls: ThreadPoolExecutor, idleness: Idleness | None) -> bool:
        """End finished leases, and lease as many messages as there is room for; False if there is nothing more to
        do."""
        if self._end_calls() and idleness is not None:
            idleness.ended()
        free = self._worker.concurrency - self._running
        if self._stop.is_set():
            if self._running:
                self._pause()
            return bool(self._running or self._ended)
        turn = 0 if idleness is None else idleness.look()
        leased = self._lease(free, idleness is not None) if free else []
        for message in leased:
            with self._changed:
                self._running += 1
                self._progress.add(running=1)
            calls.submit(self._call, message)
        if not leased:
            if idleness is not None and not self._running and not self._ended:
                return not idleness.found_none(self, turn)
            if self._running:
                self._pause()
        return True

    def _lease(self, free: int, until_idle: bool) -> list[LeasedMessage]:
        wait = None if self._running or self._ended or until_idle else WORKER_WAIT_SECONDS
        try:
            return self._leasing.receive(self._worker.queue, seconds=self._worker.lease, count=free, wait=wait)
        except (QueueHeld, QueueLocked):  # it goes on when the queue is enabled, or free
            self._stop.wait(WORKER_WAIT_SECONDS / 5)
            return []

    def _pause(self) -> None:
        with self._changed:
            if not self._ended:
                self._changed.wait(WORKER_WAIT_SECONDS / 5)

    def _wait_for_calls(self) -> None:
        end = monotonic() + 60
        while self._running and monotonic() < end:
            self._pause()
            with self._changed:
                self._running -= len(self._ended)
                self._ended.clear()

    def _call(self, message: LeasedMessage) -> None:
        failure: BaseException | None = None
        try:
            with self._keeper.keeping(message):
                self._worker.call(message, self._asked, self._around)
        except BaseException as error:
            failure = error
        with self._changed:
            self._ended.append((message, failure))
            self._changed.notify()

    def _end_calls(self) -> int:
        """End the leases of calls that have returned; how many these were."""
        with self._changed:
            ended, self._ended = self._ended, []
        good = [message for message, failure in ended if failure is None and not message.ended]
        try:
            for message, failure in ended:
                if failure is not None and not message.ended:
                    with self._counting_lost():
                        self._fail(message, failure)
            self._done(good)
            self._progress.add(done=sum(failure is None and message.ended for message, failure in ended))
        finally:  # a store that is gone ends the worker, which waits for calls that still run
            with self._changed:
                self._running -= len(ended)
                self._progress.add(running=-len(ended))
        return len(ended)

    def _done(self, messages: list[LeasedMessage]) -> None:
        """Acknowledge all in one commit; if a lease was lost, each in its own."""
        try:
            if messages:
                self._leasing.done_many([message.lease for message in messages])
                for message in messages:
                    message.ended = True
        except LeaseOver:
            for message in messages:
                with self._counting_lost():
                    message.done()

    def _fail(self, message: LeasedMessage, failure: BaseException) -> None:
        if _was_cancelled(failure) and self._is_ending():
            message.release()
            return
        misfit = isinstance(failure, BodyMismatch)
        why = f"{type(failure).__name__}: {failure}"
        failed = message.fail_by_worker(why, final=misfit)
        _log_failure(message, why, failed, failure)
        buried = failed.dead_letters is not None
        self._progress.add(failed=int(not buried), dead=int(buried))

    def _is_ending(self) -> bool:
        """Whether a call was cancelled because its loop ends: then the workers are stopped, in a moment."""
        if self._around.is_over():
            self._stop.set()
        return self._stop.wait(WORKER_WAIT_SECONDS)

    @contextmanager
    def _counting_lost(self) -> Iterator[None]:
        try:
            yield
        except LeaseOver:  # it took longer than its lease, and another has the message
            self._progress.add(lost=1)


def _log_failure(message: LeasedMessage, why: str, failed: FailedAttempt, failure: BaseException) -> None:
    of = "" if failed.attempts_allowed is None else f" of {failed.attempts_allowed}"
    attempt = f"attempt {message.attempts}{of}"
    if failed.dead_letters is not None:
        then = f"it is a dead letter in {failed.dead_letters}"
    elif failed.over is not None:
        then = f"it is not delivered again ({failed.over})"
    else:
        then = "it is delivered again" + ("" if failed.due is None else f" at {to_iso(failed.due)}")
    text = f"queue {message.queue}, message {message.key}: {attempt} failed, {then}: {why}"
    log.warning("%s", text.replace("\r", "\\r").replace("\n", "\\n"))
    log.debug("message %s failed here", message.key, exc_info=failure)


async def _awaited(result: Any) -> Any:
    return await result


def _was_cancelled(failure: BaseException) -> bool:
    from asyncio import CancelledError as TaskCancelled

    return isinstance(failure, (CancelledError, TaskCancelled))


def _asked(function: Callable[..., Any], around: Surroundings) -> tuple[Asked, ...]:
    """What a function's parameters want; checked before anything is leased."""
    name = getattr(function, "__name__", type(function).__name__)
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ArgumentInvalid(argument="worker", why=f"{name} is a generator: calling it does no work")
    try:
        hints = get_type_hints(function)
    except Exception as error:
        why = f"the types of {name} cannot be found: {error}; they must be names of its module"
        raise ArgumentInvalid(argument="worker", why=why) from None
    parameters = inspect.signature(function).parameters.values()
    asked = tuple(
        _asked_as(f"{name}, {parameter.name}", hints.get(parameter.name, Message), parameter, around)
        for parameter in parameters
        if parameter.default is inspect.Parameter.empty and parameter.kind not in _ANY_NUMBER
    )
    if not asked and any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in parameters):
        asked = (Asked(Message),)  # print, or a decorator that hides what its function wants
    bodies = [one.kind for one in asked if one.exact is not None]
    if len(bodies) > 1:
        types = " and ".join(getattr(kind, "__name__", str(kind)) for kind in bodies)
        why = f"{name} asks for the body {len(bodies)} times, as {types}: give one parameter its type"
        raise ArgumentInvalid(argument="worker", why=f"{why}, and each other one a default")
    return asked


def _asked_as(what: str, kind: Any, parameter: inspect.Parameter, around: Surroundings) -> Asked:
    if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
        raise ArgumentInvalid(argument="worker", why=f"{what}: a message is given by position")
    is_message = isinstance(kind, type) and issubclass(kind, Message)
    face = next((face for other, face in around.messages if is_message and issubclass(kind, other)), None)
    if is_message and (face is not None or not _is_async(kind)):
        return Asked(kind, face=face)
    for room in around.rooms:
        if kind is not object and kind in type(room).__mro__:
            return Asked(kind, room=room)
    if _is_async(kind):
        other = "postroom.LeasedMessage" if is_message else "postroom.Postroom"
        why = f"{what}: only a room from postroom.aio.open gives {kind.__name__}; run it there, or ask for {other}"
        raise ArgumentInvalid(argument="worker", why=why)
    try:
        return Asked(kind, Decimal in types_within(kind))
    except Exception as error:
        raise ArgumentInvalid(argument="worker", why=f"{what}: {error}") from None


def _is_async(kind: Any) -> bool:
    return getattr(kind, "__module__", "").startswith("postroom.aio.")


def _given(message: LeasedMessage, asked: Asked) -> Any:
    if asked.room is not None:
        return asked.room
    if asked.exact is None:
        return message if asked.face is None else asked.face(message)
    is_json = message.format is Format.JSON
    try:
        return fitted(parse_json(message.body, exact=True) if asked.exact and is_json else message.value, asked.kind)
    except BodyMismatch as misfit:
        if message.format is not Format.TEXT or not message.body.lstrip().startswith(("{", "[")):
            raise
        why = f'{misfit.facts["why"]}. It was sent as text; send it as JSON: with --format json, or format="json"'
        raise BodyMismatch(type=misfit.facts["type"], why=why) from None
