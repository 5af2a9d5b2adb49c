"""Renews leases in a background thread, however long the work takes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from postroom.errors import LeaseLost, PostroomError
from postroom.limits import ENGINE_LEASE_SECONDS
from postroom.store.kernel.base import Store


@contextmanager
def beating(store: Store, beat: Callable[[], object], lost: Callable[[LeaseLost], object]) -> Iterator[None]:
    """Call ``beat``, which renews a lease, during the ``with`` block; call ``lost`` if another process has taken the
    lease."""
    ended = threading.Event()
    thread = threading.Thread(target=_beat, args=(store, ended, beat, lost), name="postroom-lease", daemon=True)
    try:
        thread.start()
        yield
    finally:
        ended.set()
        if thread.ident is not None:  # Ctrl-C may come while it starts
            thread.join()


def _beat(
    store: Store, ended: threading.Event, beat: Callable[[], object], lost: Callable[[LeaseLost], object]
) -> None:
    while not ended.wait(ENGINE_LEASE_SECONDS / 5):
        try:
            beat()
        except LeaseLost as error:
            lost(error)
        except PostroomError:  # busy or gone for a moment: there are more turns before the lease runs out
            if store.stopped:
                return
