"""The command that makes Spark start faster."""

from __future__ import annotations

from pathlib import Path

import pytest

from postroom.engine.spark.classes import place

from ...conftest import Run


def test_it_tells_where_the_classes_are(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    place().parent.mkdir(parents=True)
    place().write_bytes(b"x" * 3_000_000)
    assert run("prepare").out == f"Spark's classes were kept before: {place()} (3 MB)\n"
    assert run("prepare", "--json").json == {"status": "00", "file": str(place()), "size": 3_000_000}
    refused = run("prepare", "--file", "/dev")
    assert refused.code == 1
    assert "argument-invalid" in refused.err
