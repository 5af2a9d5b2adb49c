"""Reads schemas, and compares messages with them, in a child process with limits of time and memory.

Patterns backtrack, and nested groups grow exponentially. Schemas with neither are validated in this process, in linear
time. ``python -m postroom.engine.schema_process`` is that process.
"""

from __future__ import annotations

import json
from functools import lru_cache

from postroom.engine.bounded_process import BoundedProcesses, Ended, attend, seconds_of
from postroom.errors import SchemaInvalid, SchemaMalformed
from postroom.limits import EVALUATION_SECONDS
from postroom.model.schema import check_schema, compile_schema, is_linear
from postroom.model.wsdl import Unusable, contract_of

_QUICK = 1_000_000_000  # characters of a schema times those of a message: a tenth of a second
_attendants = BoundedProcesses("postroom.engine.schema_process")
_is_linear = lru_cache(maxsize=64)(is_linear)


class SchemaTooSlow(Exception):
    """A message could not be validated against a schema within the limits."""


def is_quick(schema: str, body: str | None) -> bool:
    """Whether a message can be validated quickly, so that it may be done while others wait."""
    return body is None or (len(schema) * len(body) <= _QUICK and _is_linear(schema))


def check_bounded(schema: str, body: str | None, seconds: float = EVALUATION_SECONDS) -> None:
    """Like ``check_schema``, in a child process; raises ``SchemaTooSlow`` beyond its limits of time and memory."""
    if is_quick(schema, body):
        check_schema(schema, body)
    elif why := _asked("check", schema, str(body), seconds):
        raise SchemaInvalid(why=why)


def compile_bounded(schema: str, name: str) -> None:
    """Raise unless it is a schema that can be read within the limits."""
    try:
        why = _asked("compile", schema, name, EVALUATION_SECONDS)
    except SchemaTooSlow as slow:
        raise SchemaMalformed(file=name, why=str(slow)) from None
    if why:
        raise SchemaMalformed(file=name, why=why)


def check_interface(wsdl: str, port: str) -> None:
    """Raise ``Unusable`` unless the port of a WSDL, whose types are a schema, can be used."""
    try:
        why = _asked("interface", wsdl, port, EVALUATION_SECONDS)
    except SchemaTooSlow as slow:
        raise Unusable(f"the types of the interface: {slow}") from None
    if why:
        raise Unusable(why)


def _asked(verb: str, schema: str, other: str, seconds: float) -> str:
    request = json.dumps([seconds, verb, schema, other]).encode()
    try:
        return _attendants.ask(request).decode()
    except Ended as end:
        limit = "memory limit" if end.in_time else f"limit of {seconds:g} seconds"
        raise SchemaTooSlow(f"the schema exceeded the {limit}") from None


def _answer(request: bytes, tell: object) -> bytes:
    _, verb, schema, other = json.loads(request)
    try:
        if verb == "check":
            check_schema(schema, other)
        elif verb == "compile":
            compile_schema(schema, other)
        else:
            contract_of(schema, other)
    except (SchemaInvalid, SchemaMalformed) as error:
        return str(error.facts["why"]).encode()
    except Unusable as error:
        return str(error).encode()
    return b""


if __name__ == "__main__":
    attend(_answer, seconds_of)
