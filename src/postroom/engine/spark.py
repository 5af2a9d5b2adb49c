"""The one Spark session of this process, and what it is set to."""

from __future__ import annotations

import os
import re
import secrets
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path

from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from postroom.engine.java import java_home
from postroom.engine.launch import end, launch
from postroom.errors import SparkUnavailable

__all__ = ["java_home", "session", "stop"]

_LOCAL = re.compile(r"local(\[(\d+|\*)(, *\d+)?\])?$|local-cluster\[[^]]*\]$")
# What Python workers on this machine see of our environment. Everything else is blank there: a rule's code must find no
# secrets. More is given with spark.executorEnv.NAME.
_KEPT = re.compile(
    r"(HOME|HOSTNAME|LANG|LANGUAGE|LC_\w+|LD_LIBRARY_PATH|LOGNAME|PATH|PG(?!PASSWORD)\w+|PYTHON\w*|SHELL|TERM|TMPDIR|TZ"
    r"|USER|VIRTUAL_ENV|XDG_\w+|JAVA_\w+|HADOOP_\w+|_?SPARK_\w+|PYSPARK_\w+)$"
)
_lock = threading.Lock()


def session(master: str = "local[*]", conf: Mapping[str, str] | None = None) -> SparkSession:
    """The session of this process, started if there is none; what ``conf`` says wins over what is set here."""
    wanted = dict(conf or {})
    with _lock:
        running = SparkSession.builder.getOrCreate() if SparkContext._active_spark_context else None
        if running is not None:
            return _adjusted(running, master, wanted)
        return launch(master, {**_settings(master), **wanted}, local=bool(_LOCAL.match(master)))


def stop() -> None:
    """End the session and its Java; without a session nothing happens."""
    with _lock:
        if SparkContext._active_spark_context is not None:
            SparkSession.builder.getOrCreate().stop()
        end()


def _adjusted(running: SparkSession, master: str, wanted: Mapping[str, str]) -> SparkSession:
    """The running session, if it is what was asked for. Settings that may change while it runs are changed."""
    has = running.sparkContext.master
    if has != master:
        why = f"this process already has a session with master {has}"
        raise SparkUnavailable(master=master, why=why, advice="stop it first, or ask for the master it has")
    for name, value in wanted.items():
        if running.sparkContext.getConf().get(name) == value:
            continue
        try:
            running.conf.set(name, value)
        except PySparkException as error:
            why = f"{name} cannot change while a session runs"
            raise SparkUnavailable(master=master, why=why, advice="stop the session first") from error
    return running


def _settings(master: str) -> dict[str, str]:
    """What we set, unless the user says otherwise."""
    settings = {
        "spark.app.name": "postroom",
        "spark.log.level": "ERROR",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Tables live in memory and their files in a temporary folder: nothing is left where the user stands.
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": str(Path(tempfile.gettempdir()) / f"postroom-warehouse-{os.geteuid()}"),
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # The engine retries by itself, in smaller pieces. A plain local[n] never retries and does not look here;
        # local[n,failures] says it in the master.
        "spark.task.maxFailures": "1",
    }
    if _LOCAL.match(master):
        settings |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.authenticate": "true",
        }
        settings |= {f"spark.executorEnv.{name}": "" for name in os.environ if not _KEPT.match(name)}
    if master.startswith("local-cluster"):
        settings["spark.authenticate.secret"] = secrets.token_hex(32)  # a plain local master draws its own
    return settings
