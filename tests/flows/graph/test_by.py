"""Who does something in a graph is known without the language of graphs: every load of definitions asks for it."""

from __future__ import annotations

import subprocess
import sys

from postroom.flows.graph.by import By


def test_nobody_is_proven_who_has_not_shown_a_password() -> None:
    assert By("ann", "here").proven is False
    assert By("ann", "here") != By("ann", "here", proven=True)


def test_whoever_acts_is_known_without_patterns() -> None:
    script = "import sys, postroom.flows.graph.by\nprint([name for name in sys.modules if 'flows.language' in name])"
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert told.stdout == "[]\n"
