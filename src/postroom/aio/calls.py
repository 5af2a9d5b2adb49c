"""How a method of a room becomes one to be awaited. Written once, with its types."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from functools import partial, wraps
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from postroom.aio.threads import Threads

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")
T = TypeVar("T")
_END = object()


class Part:
    """A part of a room whose methods run in threads."""

    def __init__(self, threads: Threads, here: Any) -> None:
        self._threads = threads
        self._here = here

    def __repr__(self) -> str:
        return f"<async {self._here!r}>"


class Call(Generic[P, R]):
    """An awaitable method with the arguments and the result of the method that it calls."""

    def __init__(
        self,
        method: Callable[..., Any],
        then: Callable[[Threads, Any], R] | None = None,
        *,
        apart: bool = False,
        other: str | None = None,
    ) -> None:
        self._method = method
        self._other = other
        self._then = then
        self._apart = apart
        self.__doc__ = method.__doc__

    @overload
    def __get__(self, it: None, owner: type) -> Call[P, R]: ...
    @overload
    def __get__(self, it: Part, owner: type) -> Callable[P, Coroutine[Any, Any, R]]: ...
    def __get__(self, it: Part | None, owner: type) -> Call[P, R] | Callable[P, Coroutine[Any, Any, R]]:
        if it is None:
            return self
        if self._other is not None:
            other: Callable[P, Coroutine[Any, Any, R]] = getattr(it, self._other)
            return other
        threads, here, then = it._threads, getattr(it._here, self._method.__name__), self._then

        @wraps(self._method)
        async def called(*given: P.args, **named: P.kwargs) -> Any:
            answer = await threads.run(partial(here, *given, **named), apart=self._apart)
            return answer if then is None else then(threads, answer)

        return called


def call(method: Callable[Concatenate[Any, P], R]) -> Call[P, R]:
    """An awaitable method that returns the result as it is."""
    return Call(method)


def long(method: Callable[Concatenate[Any, P], R]) -> Call[P, R]:
    """Like ``call``, for a method that may take long: it runs in a thread of its own."""
    return Call(method, apart=True)


def made(method: Callable[Concatenate[Any, P], S], kind: Callable[[Threads, S], R]) -> Call[P, R]:
    """An awaitable method whose result is wrapped as ``kind``, because it has methods to be awaited itself."""
    return Call(method, kind)


def through(method: Callable[Concatenate[Any, P], R], other: str) -> Call[P, R]:
    """An awaitable method that calls ``other`` of the same object, which takes the same arguments."""
    return Call(method, other=other)


class Unawaited(Generic[P, R]):
    """A method that returns at once, without ``await``: what it returns runs the call in threads when it is used."""

    def __init__(self, method: Callable[..., Any], make: Callable[[Threads, Callable[[], Any]], R]) -> None:
        self._method = method
        self._make = make
        self.__doc__ = method.__doc__

    @overload
    def __get__(self, it: None, owner: type) -> Unawaited[P, R]: ...
    @overload
    def __get__(self, it: Part, owner: type) -> Callable[P, R]: ...
    def __get__(self, it: Part | None, owner: type) -> Unawaited[P, R] | Callable[P, R]:
        if it is None:
            return self
        threads, here = it._threads, getattr(it._here, self._method.__name__)

        @wraps(self._method)
        def called(*given: P.args, **named: P.kwargs) -> R:
            return self._make(threads, partial(here, *given, **named))

        return called


def stream(method: Callable[Concatenate[Any, P], Iterator[T]]) -> Unawaited[P, AsyncIterator[T]]:
    """A method that returns an iterator, as an ``async`` iterator."""
    return Unawaited(method, partial(iterated, apart=True))


async def iterated(threads: Threads, begin: Callable[[], Iterator[T]], *, apart: bool = False) -> AsyncIterator[T]:
    """Iterate over a plain iterator; each ``next`` runs in a thread."""
    iterator = await threads.run(lambda: iter(begin()), apart=apart)
    while (item := await threads.run(partial(next, iterator, _END), apart=apart)) is not _END:
        yield item
