"""How a method of a room becomes one that is awaited: written once, with its types."""

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
    """Something of a room whose methods are called in threads."""

    def __init__(self, threads: Threads, here: Any) -> None:
        self._threads = threads
        self._here = here

    def __repr__(self) -> str:
        return f"<async {self._here!r}>"


class Call(Generic[P, R]):
    """A method that is awaited, with the arguments and the answer of the one that is called."""

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
    """A method whose answer is what it is."""
    return Call(method)


def long(method: Callable[Concatenate[Any, P], R]) -> Call[P, R]:
    """A method that may take long: it has a thread of its own."""
    return Call(method, apart=True)


def made(method: Callable[Concatenate[Any, P], S], kind: Callable[[Threads, S], R]) -> Call[P, R]:
    """A method whose answer has methods to be awaited."""
    return Call(method, kind)


def through(method: Callable[Concatenate[Any, P], R], other: str) -> Call[P, R]:
    """A method whose work is done by another of the same object, which takes the same arguments."""
    return Call(method, other=other)


class Unawaited(Generic[P, R]):
    """A method that answers at once, with what ``make`` makes of the call: it is called in threads, when asked for."""

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
    """A method that answers with one thing after another."""
    return Unawaited(method, partial(iterated, apart=True))


async def iterated(threads: Threads, begin: Callable[[], Iterator[T]], *, apart: bool = False) -> AsyncIterator[T]:
    """Each of what a plain iterator has; the next is asked for in a thread."""
    iterator = await threads.run(lambda: iter(begin()), apart=apart)
    while (item := await threads.run(partial(next, iterator, _END), apart=apart)) is not _END:
        yield item
