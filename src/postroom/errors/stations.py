"""Errors of stations, nodes, mail and queries."""

from __future__ import annotations

from postroom.errors.root import PostroomError


class StationError(PostroomError):
    """An error about stations, nodes, or queries over them."""


class DossierUnknown(StationError):
    code = "dossier-unknown"
    template = "{station} has no dossier {name} (postroom dossier add {name} KEY begins one){nearest}"
    advice = "Look at the names with `postroom dossier list`."


class KeysExhausted(StationError):
    code = "keys-exhausted"
    template = (
        "this store is a node and has no {count} keys left in its block; "
        "the next block comes from the control node when a station creates a message"
    )
    advice = "Create a message at a station of this node while the control node answers."


class MessageElsewhere(StationError):
    code = "message-elsewhere"
    template = "message {key} is not in the database of {station}: {where}"
    advice = "Find it with `postroom locate KEY`, and ask the station that has it."


class NodeDown(StationError):
    code = "node-down"
    template = "node {node} does not answer: {why}"
    advice = "Start the node's store or its network. Other nodes still work; ask again, or ask only those."


class NodeUnfit(StationError):
    code = "node-unfit"
    template = "{url} cannot be used in a network: {why}"
    advice = "Give the address of an empty file or database."


class NodeUnknown(StationError):
    code = "node-unknown"
    template = "there is no node {node} (postroom node list shows them){nearest}"
    advice = "Look at `postroom node list`, or add it with `postroom node add`."


class QueryExpired(StationError):
    code = "query-expired"
    template = "query {query} exceeded its time limit{limit}; give it more time with --timeout"
    advice = "Give more time with `--timeout`, ask fewer stations, or index a field."


class QueryOvertaken(StationError):
    code = "query-overtaken"
    template = "query {query} was overtaken by query {by} while it was opened; ask again"
    advice = "Ask again."


class QueryTooLarge(StationError):
    code = "query-too-large"
    template = "the answer has more than {limit} messages; ask for fewer, or for their number with --count"
    advice = "Add conditions, or ask only for the number with `--count`."


class SqlRefused(StationError):
    code = "sql-refused"
    template = "the statement is refused: {why}"
    advice = "Ask with SELECT, of the tables that `postroom table list` shows."


class StationInUse(StationError):
    code = "station-in-use"
    template = "{name} cannot come or go: {why}"
    advice = "Ship or get its messages first, as the message says."


class StationTaken(StationError):
    code = "station-taken"
    template = "station {station} already exists, on node {node}"
    advice = "Choose another name, or use the station that is there."


class StationUnknown(StationError):
    code = "station-unknown"
    template = "there is no station {station} (postroom station list shows them){nearest}"
    advice = "Look at `postroom station list`, or add it with `postroom station add`."


class TableUnknown(StationError):
    code = "table-unknown"
    template = "{station} has no temporary table {name} (postroom query TYPE --into {name} makes one){nearest}"
    advice = "Look at the names with `postroom table list`, or keep a query's answer with `--into NAME`."
