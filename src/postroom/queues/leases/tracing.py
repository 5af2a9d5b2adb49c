"""Tracing: a worker's sends continue the trace of the message that it processes."""

from __future__ import annotations

from contextvars import ContextVar

#: The property that names a trace, as W3C Trace Context writes it.
TRACE = "traceparent"
current_trace: ContextVar[str | None] = ContextVar("postroom_trace", default=None)
