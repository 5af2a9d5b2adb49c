"""The command that runs streams."""

from __future__ import annotations

from pathlib import Path

from ...conftest import Run


def test_a_stream_that_is_not_there_is_told(run: Run, tmp_path: Path) -> None:
    assert run("queue", "create", "q").code == 0
    found = run("stream", "Bids", "--checkpoints", str(tmp_path))
    assert found.code == 1
    assert "stream-unknown: this room has no space with events from outside" in found.err


def test_arguments_are_checked_before_spark_starts(run: Run, tmp_path: Path) -> None:
    assert run("gateway", "add", "g", "files", f"folder={tmp_path}").code == 0
    (tmp_path / "g.flow").write_text('domain d\nspace A : [n: int] from files "g/a" format json\n')
    assert run("load", str(tmp_path / "g.flow")).code == 0
    found = run("stream", "--checkpoints", str(tmp_path), "--refused", "h/x")
    assert "gateway-unknown" in found.err
    assert "argument-invalid" in run("stream", "--checkpoints", str(tmp_path), "--every", "-1").err
