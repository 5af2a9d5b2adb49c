"""Starting Spark's Java: with the right environment, its settings out of others' sight, and an ear for what it says."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyspark
from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException, PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from postroom.engine.java import java_home
from postroom.errors import SparkUnavailable

# Every user of the machine can read a command line. The words are those of Spark's own redaction.
_SECRET = re.compile(r"secret|password|token|credential|access.?key|^spark\.executorEnv\.", re.IGNORECASE)
_NOISE = re.compile(r"^\s|^\d\d/\d\d/\d\d .*? (INFO|WARN) |^WARNING: |^Using Spark's default|^Setting default log level")


def launch(master: str, settings: Mapping[str, str], *, local: bool) -> SparkSession:
    """A new session. Why there is none is told in one line, taken from what Java answered or printed."""
    conf = _conf({**settings, "spark.master": master})
    ear = _Ear()
    try:
        with _environment(local), _interrupts_unchanged():
            if SparkContext._gateway is None:
                SparkContext._gateway = _gateway(settings, ear)
                SparkContext._jvm = SparkContext._gateway.jvm
            return SparkSession(SparkContext(conf=conf))
    except (Py4JError, PySparkException) as error:
        why = _reason(error, ear)
        end()
        raise SparkUnavailable(master=master, why=why, advice="check the master and the settings for Spark") from error
    finally:
        ear.pass_on()


def end() -> None:
    """End the Java that serves this process. Spark keeps it for the next session, which may need another."""
    gateway, SparkContext._gateway, SparkContext._jvm = SparkContext._gateway, None, None
    if gateway is None:
        return
    gateway.shutdown()
    process = getattr(gateway, "proc", None)
    if process is not None:
        process.stdin.close()  # Java ends when its input does
        process.wait()


def _conf(settings: Mapping[str, str]) -> SparkConf:
    conf = SparkConf(loadDefaults=False)
    for name, value in settings.items():
        conf.set(name, value)
    return conf


def _gateway(settings: Mapping[str, str], ear: _Ear) -> JavaGateway:
    # The rest reaches Spark through the gateway, once there is one.
    public = {name: value for name, value in settings.items() if not _SECRET.search(name)}
    writer = ear.listen()
    try:
        return launch_gateway(_conf(public), {"stderr": writer})
    finally:
        os.close(writer)  # Java has its own copy


def _reason(error: Exception, ear: _Ear) -> str:
    """The one line that tells the cause."""
    said = str(error)
    if isinstance(error, Py4JJavaError):
        said = str(error.java_exception.getMessage() or error.java_exception.toString())
    elif isinstance(error, PySparkRuntimeError):  # there is no Java to answer: what did it print?
        said = "\n".join(line for line in ear.heard() if not _NOISE.search(line)) or said
    return next((line.strip().rstrip(".") for line in said.splitlines() if line.strip()), type(error).__name__)


@contextmanager
def _environment(local: bool) -> Iterator[None]:
    """What Spark's start script and Java look up; nothing is taken away, so other threads may go on reading."""
    wanted = {"JAVA_HOME": java_home(), "SPARK_HOME": os.environ.get("SPARK_HOME") or str(Path(pyspark.__file__).parent)}
    if local:
        wanted |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    else:
        wanted |= {"PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON") or sys.executable}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _interrupts_unchanged() -> Iterator[None]:
    """Spark takes over the interrupt signal. Whoever has a handler of their own keeps it."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if before not in (signal.default_int_handler, None) and signal.getsignal(signal.SIGINT) is not before:
            signal.signal(signal.SIGINT, before)


class _Ear:
    """Listens to Java's error output: kept while it starts, passed on to ours when it runs."""

    def __init__(self) -> None:
        self._kept: deque[bytes] = deque(maxlen=200)
        self._passing_on = False
        self._thread: threading.Thread | None = None

    def listen(self) -> int:
        """Start; answers with the end to write to."""
        reader, writer = os.pipe()
        self._thread = threading.Thread(target=self._listen, args=(reader,), name="spark-stderr", daemon=True)
        self._thread.start()
        return writer

    def heard(self) -> list[str]:
        """What Java said, after its end."""
        if self._thread is not None:
            self._thread.join(timeout=5)
        return [line.decode("utf-8", "replace").rstrip() for line in self._kept]

    def pass_on(self) -> None:
        self._passing_on = True

    def _listen(self, reader: int) -> None:
        with open(reader, "rb") as said:
            for line in said:
                if self._passing_on:
                    os.write(2, line)
                else:
                    self._kept.append(line)
