"""The engine on real Spark, killed: at its commits, at random, in its executors and workers, and asked to end."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep

import pytest
from pyspark.sql import SparkSession

import postroom
from postroom.room import Postroom

from .engine_workload import PROGRAM, is_bad

ROOT = Path(__file__).parents[2]
MASTER = "local[2]"
POINTS = [f"{label}.{moment}" for label in ("claim", "step") for moment in ("begun", "committing", "committed")]


@dataclass
class History:
    """What workloads said: which requests they began to send, and which were acknowledged, by key."""

    begun: set[str] = field(default_factory=set)
    acknowledged: dict[str, str] = field(default_factory=dict)

    def add(self, said: str) -> None:
        for line in said.splitlines(keepends=True):
            words = line.split()
            if line.endswith("\n") and words[:2] == ["begin", "request"]:
                self.begun.add(words[2])
            elif line.endswith("\n") and words[:2] == ["ok", "request"]:
                self.acknowledged[words[2]] = words[3]


class Workload:
    """A running workload; what it says is kept in a file, which outlives it."""

    module = "tests.faults.engine_workload"

    def __init__(
        self,
        url: str,
        folder: Path,
        name: str,
        count: int,
        fault: str = "",
        master: str = MASTER,
        exchange: str | None = None,
    ) -> None:
        self.place = folder / name
        self.place.mkdir()
        self._said = self.place / "said"
        self._complaints = self.place / "complaints"
        with self._said.open("w") as out, self._complaints.open("w") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-m", self.module, url, str(folder), name, str(count), master]
                + ([] if exchange is None else [exchange]),
                cwd=ROOT,
                env={**os.environ, "POSTROOM_FAULT": fault, "TMPDIR": str(self.place)},
                stdout=out,
                stderr=err,
            )

    @property
    def said(self) -> str:
        return self._said.read_text()

    @property
    def complaints(self) -> str:
        return self._complaints.read_text()

    def wait_for(self, word: str) -> None:
        def heard() -> bool:
            assert self.process.poll() is None or word in self.said, self.complaints[-2000:]
            return word in self.said

        wait_until(heard)

    def end(self) -> int:
        return self.process.wait(timeout=240)

    def kill(self) -> None:
        """As a power cut would: and everything that it started must end by itself."""
        family = descendants(self.process.pid)
        self.process.kill()
        self.process.wait()
        wait_until(lambda: not any(is_running(process) for process in family))


@contextmanager
def started(*arguments: object, kind: type[Workload] = Workload, **options: str) -> Iterator[Workload]:
    workload = kind(*arguments, **options)  # type: ignore[arg-type]  # passed on as they came
    try:
        yield workload
    finally:
        workload.kill()


def wait_until(condition: Callable[[], bool], seconds: float = 120) -> None:
    end = monotonic() + seconds
    while not condition():
        assert monotonic() < end, "it did not happen in time"
        sleep(0.02)


def children(process: int) -> list[int]:
    found: list[int] = []
    with suppress(OSError):  # it has ended
        for task in Path(f"/proc/{process}/task").iterdir():
            with suppress(OSError):  # threads come and go
                found += map(int, (task / "children").read_text().split())
    return found


def descendants(process: int) -> list[int]:
    return [each for child in children(process) for each in (child, *descendants(child))]


def command(process: int) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def check(url: str, history: History, engine: Callable[[Postroom], Postroom] = lambda room: room) -> None:
    """After the rest was worked off: one outcome for every acknowledged request, at most one for any other."""
    with postroom.open(url) as room:
        engine(room).run_until_idle(master=MASTER)
        offers = Counter(re.findall(r"<id>([\w-]+)</id>", "".join(bodies(room, "customer"))))
        errors = Counter(
            id for body in bodies(room, "broken") for id in re.findall(r"<initialMessage.*<id>([\w-]+)</id>", body)
        )
        reminders = Counter(re.findall(r"<id>([\w-]+)</id>", "".join(bodies(room, "reminders"))))
        entries = re.findall(r"<entry>([\w-]+)</entry>", "".join(bodies(room, "book")))
        assert set(offers.values()) | set(errors.values()) | set(reminders.values()) <= {1}, "something was doubled"
        assert len(set(entries)) == len(entries) == len(offers), "something was doubled or lost"
        assert set(offers) == set(reminders) == set(entries)
        outcomes = set(offers) | set(errors)
        assert set(history.acknowledged.values()) <= outcomes <= history.begun, "something was lost or invented"
        assert not set(offers) & set(errors)
        assert all(is_bad(number_of(id)) for id in errors), "a good request was blamed"
        assert not any(is_bad(number_of(id)) for id in offers)
        for name in {id.partition("-")[0] for id in entries}:
            numbers = [number_of(id) for id in entries if id.startswith(f"{name}-")]
            assert numbers == sorted(numbers), "not in the order of sending"
        for key in history.acknowledged:
            assert [event.verb for event in room.trace(key)] == ["put", "take"]
        for id in outcomes:
            assert room.journal.slice("requestMsgs", id) == [], "its slice was not reset"
        check_retention(room)


def check_retention(room: Postroom) -> None:
    room.engine.sweep()
    for count in room.queues.accept().queues:
        assert count.unprocessed == len(room.queues.info(count.queue).messages)
        assert count.processed == len(room.queues.history(count.queue).messages) == 0, (
            "no slice holds anything any more"
        )
        if count.queue not in ("book", "reminders", "broken"):
            assert count.unprocessed == 0


def bodies(room: Postroom, queue: str) -> list[str]:
    """Those that nobody watches are unprocessed, the others processed."""
    return [message.body for listing in (room.queues.info, room.queues.history) for message in listing(queue)]


def number_of(id: str) -> int:
    return int(id.partition("-")[2])


@pytest.mark.parametrize("point", [pytest.param(point, marks=pytest.mark.slow) for point in POINTS])
def test_killed_at_a_commit_and_restarted_everything_happens_once(
    url: str, tmp_path: Path, spark: SparkSession, point: str
) -> None:
    killed_at(point, url, tmp_path)


def test_killed_before_a_step_commits(sqlite_url: str, tmp_path: Path, spark: SparkSession) -> None:
    killed_at("step.committing", sqlite_url, tmp_path)


@pytest.mark.slow
def test_killed_after_a_step_has_committed(postgres_url: str, tmp_path: Path, spark: SparkSession) -> None:
    killed_at("step.committed", postgres_url, tmp_path)


def killed_at(point: str, url: str, folder: Path) -> None:
    history = History()
    with started(url, folder, "a", 60, fault=f"{point}:kill:4") as workload:
        assert workload.end() == -signal.SIGKILL, workload.complaints[-2000:]
        history.add(workload.said)
    assert history.acknowledged
    check(url, history)


@pytest.mark.slow
def test_killed_at_random_moments_again_and_again(url: str, tmp_path: Path, spark: SparkSession) -> None:
    chance = random.Random(7)
    history = History()
    for number in range(6):
        with started(url, tmp_path, f"r{number}", 400) as workload:
            workload.wait_for("step 1\n")
            sleep(chance.uniform(0, 3))
            workload.kill()
            history.add(workload.said)
    assert len(history.acknowledged) > 100
    check(url, history)


@pytest.mark.slow
def test_executors_and_workers_of_a_cluster_may_die_in_the_middle_of_a_step(
    url: str, tmp_path: Path, spark: SparkSession
) -> None:
    history = History()
    with started(url, tmp_path, "c", 400, master="local-cluster[2,1,1024]") as workload:
        workload.wait_for("step 3\n")
        kill_one(workload, "CoarseGrainedExecutorBackend")
        workload.wait_for("step 8\n")
        kill_one(workload, "pyspark.daemon", leaf=True)
        workload.wait_for("step 12\n")
        kill_one(workload, "pyspark.daemon")
        workload.wait_for("step 16\n")
        kill_one(workload, "CoarseGrainedExecutorBackend")
        assert workload.end() == 0, workload.complaints[-2000:]
        assert workload.said.endswith("finished\n")
        history.add(workload.said)
    assert len(history.acknowledged) == 400
    check(url, history)


def kill_one(workload: Workload, word: str, *, leaf: bool = False) -> None:
    """End one process that the workload started: the first that runs ``word`` and, if wanted, has no children."""

    def found() -> list[int]:
        mine = [process for process in descendants(workload.process.pid) if word in command(process)]
        return [process for process in mine if not leaf or not children(process)]

    wait_until(lambda: bool(found()))
    os.kill(found()[0], signal.SIGKILL)


@pytest.mark.slow
def test_an_engine_whose_java_dies_says_so_or_starts_another(
    sqlite_url: str, tmp_path: Path, spark: SparkSession
) -> None:
    """In the middle of a step it says so; between two steps the next one starts a new Java."""
    history = History()
    with started(sqlite_url, tmp_path, "j", 200) as workload:
        workload.wait_for("step 2\n")
        kill_one(workload, "SparkSubmit")
        if workload.end() != 0:
            assert "SparkUnavailable" in workload.complaints.splitlines()[-1], workload.complaints[-2000:]
        history.add(workload.said)
    check(sqlite_url, history)


# --- the command line ---


def postroom_run(url: str, folder: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-m", "postroom", "--room", url, "run", *words],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def with_backlog(url: str, folder: Path, count: int) -> Postroom:
    room = postroom.open(url)
    program = folder / "program.demaq"
    program.write_text(PROGRAM)
    room.load(program)
    requests = [f"<request><id>a-{number}</id><n>{number}</n></request>" for number in range(count)]
    room.send_many("requests", [each for number, each in enumerate(requests) if not is_bad(number)], format="xml")
    return room


STEP = re.compile(
    r"step=\d+ messages=\d+ created=\d+ failures=\d+ lag=\d+ evaluated=\w+ claim_ms=\d+ evaluate_ms=\d+ commit_ms=\d+"
)


def test_sigterm_in_the_middle_of_a_backlog_leaves_nothing_half_done(
    sqlite_url: str, tmp_path: Path, spark: SparkSession
) -> None:
    room = with_backlog(sqlite_url, tmp_path, 3_000)
    engine = postroom_run(sqlite_url, tmp_path, "--master", "local[1]")
    try:
        wait_until(lambda: bool(room.queues.history("requests", limit=1).messages))
        engine.send_signal(signal.SIGTERM)
        out, err = engine.communicate(timeout=120)
    finally:
        engine.kill()
        engine.wait()
    assert (engine.returncode, out) == (0, ""), err
    assert room.operations.lag() > 0, "it came too late to be in the middle"
    lines = err.splitlines()
    lines.remove("stopping after the current work")
    assert re.fullmatch(r"\d+ message\(s\) processed in \d+ step\(s\)", lines[-2]), err
    assert lines[-1] == "0 effect(s) done"
    assert lines[:-2], "a line tells of a step"
    assert all(STEP.fullmatch(line) for line in lines[:-2]), err
    for queue in ("finance", "legal", "book"):
        made = room.queues.accept(queue).queues[0]
        assert made.unprocessed + made.processed == len(room.queues.history("requests").messages)
    assert room.run_until_idle(master=MASTER, step_messages=10_000) > 0, "the lease was given back"
    assert len(bodies(room, "customer")) == 2_700


@pytest.mark.slow
def test_a_run_until_idle_with_its_own_master_and_settings(sqlite_url: str, tmp_path: Path) -> None:
    room = with_backlog(sqlite_url, tmp_path, 20)
    words = ["--until-idle", "--master", "local[1]", "--conf", "spark.sql.shuffle.partitions=1"]
    out, err = postroom_run(sqlite_url, tmp_path, *words).communicate(timeout=240)
    lines = err.splitlines()
    assert out == ""
    assert re.fullmatch(r"126 message\(s\) processed in \d+ step\(s\)", lines[-2]), err
    assert lines[-1] == "0 effect(s) done"
    assert all(STEP.fullmatch(line) for line in lines[:-2]), err
    assert len(bodies(room, "customer")) == 18


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--conf", "nonsense"], "postroom: argument-invalid: .*KEY=VALUE, not 'nonsense'"),
        (["--master", "locl[1]"], "postroom: spark-unavailable: .*Could not parse Master URL"),
        pytest.param(
            ["--conf", "spark.sql.shuffle.partitions=many"],
            "postroom: spark-unavailable: .*shuffle.partitions",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            ["--conf", "spark.python.daemon.module=nowhere"], "postroom: spark-unavailable: .*", marks=pytest.mark.slow
        ),
    ],
)
def test_a_wrong_setting_is_told_in_one_line(sqlite_url: str, tmp_path: Path, words: list[str], said: str) -> None:
    room = with_backlog(sqlite_url, tmp_path, 3)
    engine = postroom_run(sqlite_url, tmp_path, "--until-idle", *words)
    out, err = engine.communicate(timeout=240)
    assert (engine.returncode, out) == (1, "")
    assert re.fullmatch(said + ".*\n", err), err
    assert len(room.queues.info("requests").messages) == 3, "nothing was blamed on a message"
