"""What a server logs: one line for each event, as text or as JSON. It never contains a body, a token or a password."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime

FORMATS = ("text", "json")
#: What a line may say beside its message; whoever logs gives it as ``extra``.
FIELDS = ("operation", "principal", "status", "code", "seconds", "incident", "address")


class JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = {"time": at, "level": record.levelname.lower(), "logger": record.name, "message": record.getMessage()}
        line |= {name: getattr(record, name) for name in FIELDS if hasattr(record, name)}
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line)


class TextLines(logging.Formatter):
    """One line per event, with line breaks in foreign text escaped."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  logging chose the name
        return super().formatMessage(record).replace("\n", "\\n").replace("\r", "\\r")


def configure(form: str) -> None:
    """Log to standard error; as JSON every request, as text only what an operator should see."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if form == "json" else TextLines("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    if form == "json":
        logging.getLogger("postroom.http").setLevel(logging.INFO)
