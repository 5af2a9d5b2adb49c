"""The cells of SQL tables as JSON, and back: other values are objects with the name of their kind."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any


def packed(cell: Any) -> Any:
    """A cell as JSON. Values of unknown kinds become text.

    >>> packed([Decimal("1.20"), date(2026, 1, 31), None])
    [{'decimal': '1.20'}, {'date': '2026-01-31'}, None]
    """
    if cell is None or isinstance(cell, (bool, int, float, str)):
        return cell
    if isinstance(cell, list):
        return [packed(item) for item in cell]
    if isinstance(cell, tuple):
        return {"struct": [packed(item) for item in cell]}
    if isinstance(cell, dict):
        return {"map": [[packed(key), packed(value)] for key, value in cell.items()]}
    if isinstance(cell, Decimal):
        return {"decimal": str(cell)}
    if isinstance(cell, datetime):
        return {"timestamp": [cell.isoformat(), cell.fold]}
    if isinstance(cell, date):
        return {"date": cell.isoformat()}
    if isinstance(cell, timedelta):
        return {"interval": [cell.days, cell.seconds, cell.microseconds]}
    if isinstance(cell, (bytes, bytearray)):
        return {"bytes": cell.hex()}
    return str(cell)


def unpacked(packed_cell: Any) -> Any:
    """A cell from JSON.

    >>> unpacked(packed((Decimal("1.20"), {"a": [1]})))
    (Decimal('1.20'), {'a': [1]})
    """
    if isinstance(packed_cell, list):
        return [unpacked(item) for item in packed_cell]
    if not isinstance(packed_cell, dict):
        return packed_cell
    ((kind, value),) = packed_cell.items()
    return _UNPACKED[kind](value)


_UNPACKED: dict[str, Callable[[Any], Any]] = {
    "struct": lambda value: tuple(unpacked(item) for item in value),
    "map": lambda value: {_key(unpacked(key)): unpacked(item) for key, item in value},
    "decimal": Decimal,
    "timestamp": lambda value: datetime.fromisoformat(value[0]).replace(fold=value[1]),
    "date": date.fromisoformat,
    "interval": lambda value: timedelta(*value),
    "bytes": bytes.fromhex,
}


def _key(value: Any) -> Any:
    """A key of a map: arrays become tuples."""
    return tuple(map(_key, value)) if isinstance(value, list) else value
