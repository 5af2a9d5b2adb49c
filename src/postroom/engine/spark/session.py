"""The Spark session of this process, and its settings."""

from __future__ import annotations

import os
import re
import secrets
import threading
from collections.abc import Mapping
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from postroom.engine.spark.launch import end, launch, one_line, running
from postroom.engine.spark.scratch import scratch_folder
from postroom.engine.spark.worker import is_shown
from postroom.errors import SparkUnavailable
from postroom.model.body import is_text, storable

_LOCAL = re.compile(r"local(\[(\d+|\*)(, *\d+)?\])?$|local-cluster\[[^]]*\]$")
_SOCKET_FOLDER_MAX = 60  # the path of a socket may have 104 characters on some systems, and Spark adds 43
_FEW_CORES = 4
_lock = threading.Lock()


def session(
    master: str = "local[*]", conf: Mapping[str, str] | None = None, *, other: bool = False, lasting: bool = False
) -> SparkSession:
    """The session of this process, started if there is none; ``conf`` overrides our settings.

    ``other``: accept a running session with any master. ``lasting``: tune a new one for hours of work.
    """
    wanted = dict(conf or {})
    _refuse_no_text(master, wanted)
    with _lock:
        present = running()
        if present is not None:
            return _adjusted(present, str(present.sparkContext.master) if other else master, wanted)
        place = scratch_folder()
        settings = {**_settings(master, place, lasting), **wanted}
        started = launch(master, settings, place, local=bool(_LOCAL.match(master)))
        return _checked(started, master, wanted)


def stop() -> None:
    """End the session and its Java; does nothing without one."""
    with _lock:
        end()


def _refuse_no_text(master: str, wanted: Mapping[str, str]) -> None:
    for text in (master, *wanted, *wanted.values()):
        if not is_text(str(text)):
            why = f"{storable(str(text))!r} is no text"
            raise SparkUnavailable(
                master=storable(master), why=why, advice="leave out NUL and halves of surrogate pairs"
            )


def _adjusted(present: SparkSession, master: str, wanted: Mapping[str, str]) -> SparkSession:
    """The running session if it fits, with settings changed that may change while it runs."""
    has = present.sparkContext.master
    if has != master:
        why = f"this process already has a session with master {has}"
        raise SparkUnavailable(master=master, why=why, advice="stop it first, or ask for the master it has")
    for name, value in wanted.items():
        if present.sparkContext.getConf().get(name) != value:
            _set(present, name, value, "stop the session first, or ask for what it has")
    return present


def _checked(started: SparkSession, master: str, wanted: Mapping[str, str]) -> SparkSession:
    """Set each SQL setting again, so that a wrong value raises now and not at first use."""
    try:
        for name, value in wanted.items():
            if started.conf.isModifiable(name):
                _set(started, name, value, "give another value")
    except PySparkException as error:  # so wrong that there are no SQL settings at all
        why = one_line(error)
        end()
        raise SparkUnavailable(master=master, why=why, advice="give another value") from error
    except SparkUnavailable:
        end()
        raise
    return started


def _set(session: SparkSession, name: str, value: str, advice: str) -> None:
    try:
        session.conf.set(name, value)
    except PySparkException as error:
        raise SparkUnavailable(master=session.sparkContext.master, why=one_line(error), advice=advice) from error


def _java_options(lasting: bool) -> str:
    """Java options for running beside Python workers on this machine."""
    # Java's second compiler takes the cores that the first jobs need. Without it a session and its first Python job are
    # there in two thirds of the time, and 20,000 rows through a worker take 310 ms instead of 245. It is for those who
    # stay: of five arcs, the first 40,000 events took 15 s of Java's processor time instead of 6, and after 120,000 an
    # event took a fifth less.
    options = [] if lasting else ["-XX:TieredStopAtLevel=1"]
    if (os.cpu_count() or 1) <= _FEW_CORES:
        options.append("-XX:+UseSerialGC")  # a collector that works beside us takes a quarter of Java's time
    return " ".join(options)


def _settings(master: str, place: Path, lasting: bool) -> dict[str, str]:
    """Our settings, which the user may override."""
    settings = {
        "spark.app.name": "postroom",
        "spark.log.level": "ERROR",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Tables live in memory and their files in our folder: nothing is left where the user stands.
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": str(place / "warehouse"),
        "spark.sql.shuffle.partitions": "2",
        # For its own records Spark writes the plan of every job. In the short form a job takes 10 ms less.
        "spark.sql.ui.explainMode": "simple",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # The engine retries by itself, in smaller pieces. A plain local[n] never retries and does not look here;
        # local[n,failures] says it in the master.
        "spark.task.maxFailures": "1",
        # Over TCP every exchange with a Python worker waits 40 ms for a delayed acknowledgement. A job of one row took
        # 110 ms, and takes 68 ms over Unix sockets.
        "spark.python.unix.domain.socket.enabled": str(len(str(place)) <= _SOCKET_FOLDER_MAX).lower(),
    }
    if _LOCAL.match(master):
        settings |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.local.dir": str(place),
            "spark.python.unix.domain.socket.dir": str(place),
            "spark.authenticate": "true",
            "spark.driver.extraJavaOptions": _java_options(lasting),
            "spark.executor.extraJavaOptions": _java_options(lasting),
        }
        settings |= {f"spark.executorEnv.{name}": "" for name in os.environ if not is_shown(name)}
    if master.startswith("local-cluster"):
        settings["spark.authenticate.secret"] = secrets.token_hex(32)  # a plain local master draws its own
    return settings
