"""Bounds: every figure that was asked of Postroom, on one page. A line of the benchmarks names the one it answers."""

from __future__ import annotations

import operator
from typing import NamedTuple

_RELATIONS = {">": operator.gt, "≥": operator.ge, "<": operator.lt, "≤": operator.le}


class Bound(NamedTuple):
    asked: str
    relation: str
    value: float
    unit: str = ""  # of an absolute figure; a ratio has none

    def met(self, figure: float) -> bool:
        """By the unrounded figure: 0.496 does not meet a bound of 0.5, whatever the table shows."""
        return bool(_RELATIONS[self.relation](figure, self.value))

    def margin(self, figure: float) -> float:
        """How many times better than asked; 1 is the bound itself."""
        return figure / self.value if self.relation in (">", "≥") else self.value / figure

    def __str__(self) -> str:
        return f"{self.relation} {self.value:,.10g} {self.unit}".strip()


#: By the part that measures them.
BOUNDS: dict[str, dict[str, Bound]] = {
    "queues": {
        "send-plain": Bound("durable single sends, of plain `sqlite3` by hand", "≥", 0.5),
        "send-peers": Bound("durable single sends, of `persist-queue` and of `litequeue`", ">", 1),
        "receive-plain": Bound("receives, of plain `sqlite3` by hand", "≥", 0.4),
        "receive-peers": Bound("receives, of `persist-queue` and of `litequeue`", ">", 1),
        "batch": Bound("a send of 100,000 in one commit, of one plain `executemany`", "≥", 0.7),
        "receive-growth": Bound("a receive with 1,000,000 stored messages, of one with 1,000", "≤", 1.5),
        "trace-growth": Bound("`trace` with 1,000,000 stored messages, of one with 1,000", "≤", 1.5),
        "accept-growth": Bound("`accept` with 1,000,000 stored messages, of one with 1,000", "≤", 1.5),
        "help": Bound("`postroom --help`", "<", 0.5, "s"),
        "send-command": Bound("`postroom send`", "<", 0.7, "s"),
    },
    "rules": {
        "fork": Bound("a backlog of 50,000 through the rule of Fig. 5", "≥", 20_000, "/s"),
        "fork-batch": Bound("the same, of one message at a time with a commit each", "≥", 4),
        "join": Bound("the joining rule of Fig. 7 over 10,000 slices", "≥", 10_000, "/s"),
        "growth": Bound("a message with 1,000,000 stored, of one with 10,000", "≤", 1.5),
        "reaction": Bound("from a send to an idle engine to its committed reaction", "<", 0.3, "s"),
    },
    "flows": {
        "five": Bound("five arcs over 1,000,000 events, of the same job by hand in PySpark", "≥", 2.5),
        "arcs": Bound("an event that meets 10,000 select arcs, of one that meets 100", "≤", 3),
    },
    "streams": {
        "five": Bound("five arcs, files to files, of the same job by hand in PySpark", "≥", 0.9),
        "nexmark": Bound("NEXMark's queries 1 to 8, files to files, of Spark SQL by hand", "≥", 0.7),
    },
    "stations": {
        "by-hand": Bound("global queries over 1,000,000 messages, of the same by hand in PySpark", "≥", 0.8),
        "index": Bound("a selective query by an index, of one without", "≥", 20),
        "local": Bound("a query by an index at a station with 1,000,000 messages", "<", 20, "ms"),
        "mail": Bound("a ship and a get between 1,000 stations, of those between 10", "≤", 1.5),
    },
    "procedures": {
        "join": Bound("a three-way join of 100,000 messages at 100 stations", "≥", 3_000, "/s"),
        "clips": Bound("the same, of the same rules and facts in CLIPS", "≥", 1.5),
        "growth": Bound("a message while 100,000 working sets wait, of one while 100 do", "≤", 2),
    },
    "spheres": {
        "dbos": Bound("spheres of three sends, half aborted, of workflows of `dbos`", "≥", 10),
        "dbos-wal": Bound("the same, of `dbos` on a write-ahead log", "≥", 6),
        "death": Bound("from an owner's death to the compensations, in check intervals", "<", 2),
        "check-growth": Bound("a check with 100,000 active spheres, of one with 1,000, each sphere", "≤", 2),
        "check": Bound("a check of 100,000 active spheres, in check intervals", "<", 1),
    },
    "consumers": {
        "single": Bound("PostgreSQL, 1 client: send and receive, of plain `psycopg`", "≥", 0.6),
        "many": Bound("PostgreSQL, 16 clients, one queue: send and receive, of plain `psycopg`", "≥", 0.6),
        "many-peers": Bound("the same: send, lease and done, of `procrastinate` and of `pgqueuer`", ">", 1),
        "spread": Bound("PostgreSQL, 64 clients over 16 queues: send and receive, of plain `psycopg`", "≥", 0.6),
        "workers-awa": Bound("10,000 jobs by 8 workers on PostgreSQL, of `awa-pg`", "≥", 0.7),
        "workers-peers": Bound("the same, of `procrastinate` and of `pgqueuer`", ">", 1),
        "workers-sqlite": Bound("10,000 jobs by 8 workers on SQLite, of `huey`", ">", 1),
        "group": Bound("SQLite, 32 tasks that send, of one plain durable insert at a time", "≥", 3),
        "wait": Bound("SQLite, 16 processes that send: the longest wait of one", "<", 1, "s"),
        "lease-peers": Bound("SQLite, lease and done, of those of `persist-queue` and of `litequeue`", ">", 1),
        "lease-growth": Bound("SQLite, lease and done with 1,000,000 waiting, of 1,000", "≤", 1.5),
    },
    "serving": {
        "rate": Bound("sends over HTTP by 32 clients", "≥", 5_000, "/s"),
        "bare": Bound("the same, of a bare application on the same server", "≥", 0.5),
        "half": Bound("99th percentile of a send over HTTP at half that load", "<", 50, "ms"),
        "follow": Bound("from a commit to its event at a follower, the median", "<", 20, "ms"),
    },
}
