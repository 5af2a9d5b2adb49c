"""Errors of stations, nodes, mail and queries."""

from __future__ import annotations

from postroom.errors.root import PostroomError


class StationError(PostroomError):
    """An error about stations, nodes, or queries over them."""


class DossierUnknown(StationError):
    code = "dossier-unknown"
    template = "{station} has no dossier {name} (postroom dossier add {name} KEY begins one){nearest}"
    advice = "Find the names with `postroom dossier list`."


class KeysExhausted(StationError):
    code = "keys-exhausted"
    template = (
        "this store is a node and has no {count} keys left in its block; "
        "the next block comes from the control node when a station creates a message"
    )
    advice = "Create a message at a station of this node while the control node is reachable."


class MessageElsewhere(StationError):
    code = "message-elsewhere"
    template = "message {key} is not in {place}: find it with: postroom locate {key}"
    advice = "Find it with `postroom locate KEY`, and use the station that has it."


class NodeDown(StationError):
    code = "node-down"
    template = "node {node} does not answer: {why}"
    advice = "Start the node's store or its network. Other nodes still work; try again, or leave this node out."


class NodeUnfit(StationError):
    code = "node-unfit"
    template = "{url} cannot be used in a network: {why}"
    advice = "Give the address of an empty file or database."


class NodeUnknown(StationError):
    code = "node-unknown"
    template = "there is no node {node} (postroom node list shows them){nearest}"
    advice = "Find it with `postroom node list`, or add it with `postroom node add`."


class QueryExpired(StationError):
    code = "query-expired"
    template = "query {query} exceeded its time limit{limit}; give it more time with --timeout"
    advice = "Give more time with `--timeout`, ask fewer stations, or index a field."


class QueryOvertaken(StationError):
    code = "query-overtaken"
    template = "query {query} was overtaken by query {by} while it was opened; run it again"
    advice = "Ask again."


class QueryTooLarge(StationError):
    code = "query-too-large"
    template = "the result has more than {limit} messages; add conditions, or count them with --count"
    advice = "Add conditions, or count the messages with `--count`."


class SqlRefused(StationError):
    code = "sql-refused"
    template = "the statement is refused: {why}"
    advice = "Query the tables that `postroom table list` shows."


class StationInUse(StationError):
    code = "station-in-use"
    template = "{name} cannot be added or removed: {why}"
    advice = "Ship or get its messages first, as the message says."


class StationTaken(StationError):
    code = "station-taken"
    template = "station {station} already exists, on node {node}"
    advice = "Choose another name, or use the existing station."


class StationUnknown(StationError):
    code = "station-unknown"
    template = "there is no station {station} (postroom station list shows them){nearest}"
    advice = "Find it with `postroom station list`, or add it with `postroom station add`."


class TableUnknown(StationError):
    code = "table-unknown"
    template = "{station} has no temporary table {name} (postroom query TYPE --into {name} makes one){nearest}"
    advice = "Find the name with `postroom table list`, or save a query's result with `--into NAME`."
