"""Ctrl-C during a call of a store is raised when the call has ended.

``KeyboardInterrupt`` can come between any two instructions of the main thread, also in the driver of a database. What
that leaves half done cannot be repaired. A second Ctrl-C in the same call is raised at once, for a call that hangs.
"""

from __future__ import annotations

from _signal import getsignal, signal  # type: ignore[import-not-found]  # ``signal`` takes twenty times as long
from collections.abc import Callable
from functools import wraps
from signal import SIGINT, default_int_handler
from threading import get_ident, main_thread
from types import FrameType
from typing import Concatenate, Final, ParamSpec, TypeVar

S = TypeVar("S")
P = ParamSpec("P")
T = TypeVar("T")

_NUMBER: Final = int(SIGINT)
_noted = 0  # in this call; only the main thread gets signals


def defer() -> bool:
    """From here on an interrupt is only noted. False if this is nothing for this thread or program, or done already."""
    global _noted
    if get_ident() != main_thread().ident or getsignal(_NUMBER) is not default_int_handler:
        return False
    _noted = 0  # before: one that has come is noted as soon as the handler is there
    signal(_NUMBER, _note)
    return True


def allow() -> None:
    """From here on an interrupt is raised at once; if one was noted, now."""
    signal(_NUMBER, default_int_handler)
    if _noted:
        raise KeyboardInterrupt


def deferring(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
    """A method that takes a lock other than by ``with``: an interrupt right after that would leave it locked."""

    @wraps(method)
    def call(self: S, /, *args: P.args, **named: P.kwargs) -> T:
        defers = defer()
        try:
            return method(self, *args, **named)
        finally:
            if defers:
                allow()

    return call


def whole(work: Callable[[], T], undo: Callable[[T], object]) -> T:
    """The result of ``work``, which takes something for its caller. If an interrupt comes before the caller has it,
    ``undo`` is called with the result, and the interrupt is raised."""
    if not defer():
        return work()
    try:
        result = work()
        if _noted:
            undo(result)
    finally:
        allow()
    return result


def pausing(wait: Callable[[float], bool], seconds: float) -> bool:
    """Call ``wait``; an interrupt is raised meanwhile, also in a call that defers it."""
    if get_ident() != main_thread().ident or getsignal(_NUMBER) is not _note:
        return wait(seconds)
    try:
        allow()
        return wait(seconds)
    finally:
        defer()


def forced() -> bool:
    """Whether one was raised in the midst of the call."""
    return _noted > 1


def _note(number: int, frame: FrameType | None) -> None:
    global _noted
    _noted += 1
    if _noted > 1:
        raise KeyboardInterrupt
