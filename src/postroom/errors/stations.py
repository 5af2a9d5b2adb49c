"""Errors of stations, nodes, mail and queries."""

from __future__ import annotations

from postroom.errors.root import PostroomError


class StationError(PostroomError):
    """Something about stations, nodes, or queries over them."""


class AlbumUnknown(StationError):
    code = "album-unknown"
    template = "{station} has no temporary table {name} (postroom query TYPE --into {name} makes one){nearest}"


class DossierUnknown(StationError):
    code = "dossier-unknown"
    template = "{station} has no dossier {name} (postroom dossier add {name} KEY begins one){nearest}"


class KeysExhausted(StationError):
    code = "keys-exhausted"
    template = (
        "this store is a node and has no {count} keys left in its block; "
        "the next block comes from the control node when a station creates a message"
    )


class MessageElsewhere(StationError):
    code = "message-elsewhere"
    template = "message {key} is not in the database of {station}: {where}"


class NodeDown(StationError):
    code = "node-down"
    template = "node {node} does not answer: {why}"


class NodeUnfit(StationError):
    code = "node-unfit"
    template = "{url} cannot be used in a network: {why}"


class NodeUnknown(StationError):
    code = "node-unknown"
    template = "there is no node {node} (postroom node list shows them){nearest}"


class QueryExpired(StationError):
    code = "query-expired"
    template = "query {query} exceeded its time limit{limit}; give it more time with --timeout"


class QueryOvertaken(StationError):
    code = "query-overtaken"
    template = "query {query} was overtaken by query {by} while it was opened; ask again"


class QueryTooLarge(StationError):
    code = "query-too-large"
    template = "the answer has more than {limit} messages; ask for fewer, or for their number with --count"


class SqlRefused(StationError):
    code = "sql-refused"
    template = "the statement is refused: {why}"


class StationInUse(StationError):
    code = "station-in-use"
    template = "{name} cannot come or go: {why}"


class StationTaken(StationError):
    code = "station-taken"
    template = "station {station} already exists, on node {node}"


class StationUnknown(StationError):
    code = "station-unknown"
    template = "there is no station {station} (postroom station list shows them){nearest}"
