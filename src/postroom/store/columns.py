"""A message's columns in the order of ``Stored``, for every statement that reads whole messages and their queues."""

from __future__ import annotations

STORED = """m.key, q.name, m.created, m.processed, m.type, m.format, m.body, m.hash, m.properties, m.cause, m.position,
       m.number, coalesce(m.last, m.position)"""
