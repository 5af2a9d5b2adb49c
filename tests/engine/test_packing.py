"""What travels to a worker process, by value."""

from __future__ import annotations

import subprocess
import sys
import threading
from base64 import b64encode

import pytest

from postroom.engine.packing import packed, unpacked


def test_a_function_with_what_it_needs_runs_in_a_process_that_has_no_module_of_it() -> None:
    factor = 7

    def times(number: int) -> int:
        return number * factor

    assert unpacked(packed(times))(6) == 42
    text = b64encode(packed(times)).decode()
    program = (
        f"import base64; from postroom.engine.packing import unpacked; print(unpacked(base64.b64decode('{text}'))(6))"
    )
    assert subprocess.run([sys.executable, "-c", program, text], capture_output=True, text=True).stdout == "42\n"


def test_what_cannot_travel_is_an_error_at_once() -> None:
    with pytest.raises(TypeError):
        packed(threading.Lock())
