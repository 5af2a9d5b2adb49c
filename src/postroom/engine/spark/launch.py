"""Starting and ending Spark's Java: its environment, its folder, and its output."""

from __future__ import annotations

import atexit
import os
import re
import signal
import sys
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

import pyspark
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException, PySparkRuntimeError
from pyspark.sql import SparkSession

from postroom.engine.spark import classes, internals
from postroom.engine.spark.internals import Py4JError, Py4JJavaError, Py4JNetworkError
from postroom.engine.spark.java import java_home
from postroom.errors import SparkUnavailable

END_SECONDS = 20

# Every user of the machine can read a command line. The words are those of Spark's own redaction.
_SECRET = re.compile(r"secret|password|token|credential|access.?key|^spark\.executorEnv\.", re.IGNORECASE)
_NOISE = re.compile(
    r"^\s|^\d\d/\d\d/\d\d .*? (INFO|WARN) |^WARNING: |^Using Spark's default|^Setting default log level|^To adjust log"
)
# Spark ends workers that were idle for a minute by closing their socket, and a worker takes that for a failure.
_REAPED = re.compile(rb"pyspark/daemon\.py.*BrokenPipeError", re.DOTALL)
_LOGGED = re.compile(r" ERROR \w+: (.*)")
_CLASS = re.compile(r'^(Exception in thread "[^"]*" )?[a-z]+(\.\w+)+(Exception|Error): ')


def launch(master: str, settings: Mapping[str, str], folder: Path, *, local: bool) -> SparkSession:
    """Start a session. An error has one line, taken from Java's answer or output."""
    ear = _Ear()
    try:
        with _environment(_spark_home(master, folder), local), _interrupts_unchanged():
            if not internals.has_java():
                _start_java(settings, ear)
            session = SparkSession(SparkContext(conf=_conf({**settings, "spark.master": master})))
    except (Py4JError, PySparkException) as error:
        why = _reason(error, ear)
        end()
        raise SparkUnavailable(master=master, why=why, advice="check the master and the settings for Spark") from error
    internals.prepare(session)
    ear.pass_on()
    atexit.register(_end_with, os.getpid())
    return session


def running() -> SparkSession | None:
    """The session of this process; one whose Java has died is removed."""
    if not internals.has_session():
        return None
    process = internals.java()
    if process is None or process.poll() is None:
        try:
            return SparkSession.builder.getOrCreate()
        except (Py4JNetworkError, OSError):  # it is dying, and does not answer any more
            if process is None:
                raise
            process.kill()
            process.wait()
    end()
    return None


def end(patience: float | None = None) -> None:
    """End the session and its Java. Spark would keep Java for the next session, which may need another one."""
    _Ear.deafen()  # what the workers say while their sockets close is no news
    process = internals.end_session()
    if process is None:
        return
    process.stdin.close()  # Java ends when its input does
    until = monotonic() + (END_SECONDS if patience is None else patience)
    while process.poll() is None and monotonic() < until:
        sleep(0.02)  # without a thread that watches: at its end, the interpreter starts none
    process.kill()
    process.wait()


def _end_with(process: int) -> None:
    if os.getpid() == process:  # a forked child has no Java of its own
        end()


def one_line(error: Exception) -> str:
    """What an error from Spark says, without the trace."""
    text = str(error)
    if isinstance(error, Py4JJavaError):
        text = internals.java_message(error)
    return _first(text.splitlines()) or type(error).__name__


def _reason(error: Exception, ear: _Ear) -> str:
    """Why no session started: Java's answer or, if that says nothing, its output."""
    if isinstance(error, PySparkRuntimeError):  # there is no Java that could answer
        printed = [line for line in ear.all_heard() if not _NOISE.search(line)]
        return _first(printed) or one_line(error)
    if "stopped SparkContext" in str(error):  # it gave up by itself while it started: a cluster did not answer
        printed = [match.group(1) for match in map(_LOGGED.search, ear.heard()) if match]
        return _first(printed) or one_line(error)
    return one_line(error)


def _first(lines: list[str]) -> str:
    return next((_CLASS.sub("", line.strip()).rstrip(".") for line in lines if line.strip()), "")


def _conf(settings: Mapping[str, str]) -> SparkConf:
    conf = SparkConf(loadDefaults=False)
    for name, value in settings.items():
        conf.set(name, value)
    return conf


def _start_java(settings: Mapping[str, str], ear: _Ear) -> None:
    # The rest reaches Spark through the gateway, once there is one.
    public = {name: value for name, value in settings.items() if not _SECRET.search(name)}
    writer = ear.listen()
    try:
        internals.start_java(_conf(public), writer)
    finally:
        os.close(writer)  # Java has its own copy


@contextmanager
def _environment(home: Path, local: bool) -> Iterator[None]:
    """Set what Spark's start script and Java read. Nothing is removed, so other threads may go on reading."""
    wanted = {"JAVA_HOME": java_home(), "SPARK_HOME": os.environ.get("SPARK_HOME") or str(home)}
    wanted |= {classes.OPTIONS: classes.options()}
    if local:
        # Java would look up its own address by the name of the machine, which is not loopback on many machines: a
        # local-cluster then waits for a master that listens elsewhere.
        wanted |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    elif not os.environ.get("PYSPARK_PYTHON"):
        wanted |= {"PYSPARK_PYTHON": sys.executable}
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


def _spark_home(master: str, folder: Path) -> Path:
    """The installed Spark, at a fixed path: Java can only share classes that are always at the same place."""
    installed, home = Path(pyspark.__file__).parent, folder / "home"
    if not master.startswith("local-cluster"):
        return installed
    if not home.exists():  # a local-cluster writes into its home, and ours may be read-only: another roof over the same
        home.mkdir()
        for part in ("bin", "jars", "python"):
            (home / part).symlink_to(installed / part)
    return home


@contextmanager
def _interrupts_unchanged() -> Iterator[None]:
    """Keep the program's handler of the interrupt signal, which Spark would replace."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if before not in (signal.default_int_handler, None) and signal.getsignal(signal.SIGINT) is not before:
            signal.signal(signal.SIGINT, before)


class _Ear:
    """Reads Java's error output: keeps it during the start, then passes it on to ours."""

    _current: _Ear | None = None

    def __init__(self) -> None:
        self._kept: deque[bytes] = deque(maxlen=200)
        self._hear = self._kept.append
        self._thread: threading.Thread | None = None

    def listen(self) -> int:
        """Start; returns the file descriptor to write to."""
        reader, writer = os.pipe()
        _Ear._current = self
        self._thread = threading.Thread(target=self._listen, args=(reader,), name="spark-stderr", daemon=True)
        self._thread.start()
        return writer

    def heard(self) -> list[str]:
        return b"".join(self._kept).decode("utf-8", "replace").splitlines()

    def all_heard(self) -> list[str]:
        """All output of a Java that has ended."""
        if self._thread is not None:
            self._thread.join(timeout=END_SECONDS)
        return self.heard()

    def pass_on(self) -> None:
        self._hear = _repeat

    @staticmethod
    def deafen() -> None:
        if _Ear._current is not None:
            _Ear._current._hear = _Ear._current._kept.append

    def _listen(self, reader: int) -> None:
        with open(reader, "rb") as output:
            for piece in _pieces(output):
                if not _REAPED.search(piece):
                    self._hear(piece)


def _pieces(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Split lines, but keep a Python traceback in one piece."""
    held, tracing = b"", False
    for line in lines:
        tracing = line.startswith(b"Traceback ") or (tracing and line.startswith(b" "))
        held += line
        if not tracing:
            yield held
            held = b""
    if held:
        yield held


def _repeat(piece: bytes) -> None:
    os.write(2, piece)
