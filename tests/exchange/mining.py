"""pm4py, which reads event logs as its users have them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest


@contextmanager
def pm4py() -> Iterator[Any]:
    """It warns of what it does not find, and of what pandas changes; that is no matter of ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield pytest.importorskip("pm4py", reason="pm4py is not installed: pip install 'postroom[mining]'")
