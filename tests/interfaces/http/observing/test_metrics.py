"""Numbers for Prometheus: all of them are there, a parser reads them, and a right is needed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.faults.here import evaluate_here
from tests.interfaces.http.conftest import Served

import postroom
from postroom.interfaces.http.observing import metrics
from postroom.interfaces.http.observing.metrics import METRICS, Histogram

PROGRAM = str(Path(sys.executable).parent / "postroom")
DASHBOARD = Path(__file__).parents[4] / "deploy" / "grafana.json"


def read(text: str) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    found: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sorted(sample.labels.items()))] = sample.value
    return found


def test_a_parser_of_prometheus_reads_what_there_is(served: Served) -> None:
    served.room.queues.create("orders")
    odd = 'a "b" \\ c'
    served.room.queues.create(odd)
    served.room.send_many("orders", ["a secret"] * 3)
    served.room.receive("orders")
    token = served.user("meter", ("measure", "*"))
    with served.client() as boss, served.client(token) as meter:
        assert boss.post("/queues/orders/messages", json={"body": "a secret"}).status_code == 201
        assert meter.get("/queues").status_code == 403, "numbers, and nothing else"
        answer = meter.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert "secret" not in answer.text
    families = {family.name: family.type for family in text_string_to_metric_families(answer.text)}
    for name, metric in METRICS.items():
        assert families[name.removesuffix("_total") if metric.kind == "counter" else name] == metric.kind
    found = read(answer.text)
    assert found["postroom_queue_messages"][(("queue", "orders"),)] == 3
    assert found["postroom_queue_messages"][(("queue", odd),)] == 0
    assert found["postroom_queue_oldest_seconds"][(("queue", "orders"),)] >= 0
    assert found["postroom_queue_arrived_total"][(("queue", "orders"),)] == 4
    assert found["postroom_requests_total"][(("operation", "queues.send"), ("status", "201"))] == 1
    assert found["postroom_requests_total"][(("operation", "queues.count"), ("status", "403"))] == 1
    assert found["postroom_request_seconds_count"][(("operation", "queues.send"),)] == 1
    assert found["postroom_commit_messages_sum"][()] == 1
    assert found["postroom_refusals_total"][(("code", "right-missing"),)] == 1
    assert found["postroom_engine_up"][()] == 0
    assert found["postroom_senders_up"][()] == 0


def test_many_queues_are_told_of_within_bounds(here: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "MEASURED_QUEUES_MAX", 3)
    for number in range(6):
        here.room.queues.create(f"q{number}")
        here.room.send(f"q{number}", "x")
    with here.client() as boss:
        found = read(boss.get("/metrics").text)
    assert found["postroom_queue_messages"] == {
        (("queue", name),): count for name, count in (("q0", 1), ("q1", 1), ("q2", 1), ("…", 3))
    }


def test_nobody_reads_numbers_without_the_right(here: Served) -> None:
    with here.client("") as stranger, here.client(here.user("ann", ("look", "*"))) as ann:
        assert stranger.get("/metrics").status_code == 401
        assert ann.get("/metrics").status_code == 403
        assert ann.post("/metrics").status_code == 405


def test_a_histogram_counts_up_to_each_bound() -> None:
    histogram = Histogram((1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 9.0):
        histogram.add(value)
    assert [line.rsplit(" ", 1)[1] for line in histogram.lines("x", "")] == ["2", "3", "4", "12.000000", "4"]


def test_every_query_of_the_dashboard_and_the_guide_names_metrics_that_exist_and_none_is_forgotten() -> None:
    dashboard = json.loads(DASHBOARD.read_text())
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    named = {name for query in queries for name in re.findall(r"postroom_\w+", query)}
    written = set(METRICS) | {
        f"{name}_{end}"
        for name, each in METRICS.items()
        if each.kind == "histogram"
        for end in ("bucket", "sum", "count")
    }
    assert named <= written
    assert {name.removesuffix("_bucket") for name in named} == set(METRICS)
    alerts = re.findall(r"expr: (.*)", (DASHBOARD.parents[1] / "docs" / "guide" / "operating.md").read_text())
    assert len(alerts) == 3
    assert {name for query in alerts for name in re.findall(r"postroom_\w+", query)} <= written
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])


def test_every_step_of_an_engine_in_another_process_is_counted(
    here: Served, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """At most five were counted at each scrape, and those of before the server was started, too."""
    (tmp_path / "p.demaq").write_text(
        "create queue a kind basic mode persistent\ncreate queue b kind basic mode persistent\n"
        "create rule r for a if (/n) then do enqueue <m/> into b"
    )
    here.room.load(tmp_path / "p.demaq")
    monkeypatch.setattr(metrics, "TOP_JOURNAL_ROWS", 5)  # steps are in two parts, and are one each
    monkeypatch.setattr(metrics, "TOP_REREAD_ROWS", 8)
    with here.client() as boss, postroom.open(here.room.url, actor="other") as other:
        evaluate_here(other)
        assert _steps(boss.get("/metrics").text) == (0, 0)
        expected = 0
        for rounds in (9, 0, 2):
            for _ in range(rounds):
                here.room.send_many("a", ["<n/>"] * 3, format="xml")
                other.run_until_idle()
            expected += rounds
            assert _steps(boss.get("/metrics").text) == (expected, 3 * expected)
        here.room.send("a", "<n/>", format="xml")
        run = [PROGRAM, "--room", here.room.url, "run", "--until-idle"]
        assert subprocess.run(run, capture_output=True, timeout=60, check=False).returncode == 0
        assert _steps(boss.get("/metrics").text) == (expected + 1, 3 * expected + 1)


def _steps(text: str) -> tuple[float, float]:
    """How many steps, and of how many messages."""
    found = read(text)
    steps = sum(found.get("postroom_steps_total", {}).values())
    assert steps == found["postroom_step_messages_count"][()]
    return steps, found["postroom_step_messages_sum"][()]
