"""Errors of rooms behind a server."""

from __future__ import annotations

from postroom.errors.root import PostroomError


class ServerError(PostroomError):
    """An error on the way between a client and a room behind a server."""


class AnswerLost(ServerError):
    """The request was sent and the response was lost. It was done completely or not at all."""

    code = "answer-lost"
    template = (
        "{url} did not answer {what}: {why}. It happened in full or not at all; look, or repeat the call with the "
        "same idempotency key"
    )
    advice = "Repeat the call with the same idempotency key; or check first what happened."
    happened = "unknown"


class ClientSlow(ServerError):
    code = "client-slow"
    template = "the client is too slow: {why}"
    advice = "Read faster, send heart-beats in time, or ask for fewer messages with `prefetch-count`."


class EntryInvalid(ServerError):
    """What someone has entered on a page, or left out."""

    code = "entry-invalid"
    template = "{where}: {why}"
    advice = "Correct it on the page, and press the button again."


class ListenRefused(ServerError):
    code = "listen-refused"
    template = "nothing can listen at {url}: {why}; stop what listens there, or choose another place with {option}"
    advice = "Stop what listens there, or choose another address with the option in the message."


class MethodUnknown(ServerError):
    code = "method-unknown"
    template = "{method} is not possible at {path}; possible: {allowed}"
    advice = "Use one of the given methods; `/openapi.json` describes each path."


class NotRemote(ServerError):
    code = "not-remote"
    template = "{what} is not possible through a server; do it on the machine of the room, with its own URL"
    advice = "Run the command where the room is, with `--room` and its path or database."


class RequestHeadTooLarge(ServerError):
    code = "request-head-too-large"
    template = "the head of the request is too large: the limit is {limit}"
    advice = "Shorten the URL and the rest of the head; large data goes into the body."


class RequestInvalid(ServerError):
    code = "request-invalid"
    template = "{where}: {why}"
    advice = "Correct the given place; `/openapi.json` of the server lists the parameters of each operation."


class RequestRefused(ServerError):
    """Cross-site request: a page of another site may have sent it in the name of a signed-in user."""

    code = "request-refused"
    template = "the request is refused: {why}"
    advice = "Open the page itself, and do it there. Programs use a token: `postroom token create`."


class RequestTooLarge(ServerError):
    code = "request-too-large"
    template = "the request is larger than {limit} bytes"
    advice = "Send less in one request; `/openapi.json` and the page of limits have the limits."


class ResourceUnknown(ServerError):
    code = "resource-unknown"
    template = "there is no {method} {path}"
    advice = "Find the paths and methods in `/openapi.json`."


class ServerExposed(ServerError):
    code = "server-exposed"
    template = "{host} can be reached from other machines, so the server does not start: {why}"
    advice = "Give a certificate with its key, and add a user with a grant; or listen on 127.0.0.1 only."


class ServerFailed(ServerError):
    code = "server-failed"
    template = "the server failed on this request; its log has the reason, under {incident}"
    advice = "Read the server's log, and check what happened before you repeat the request."
    happened = "unknown"


class ServerStopping(ServerError):
    code = "server-stopping"
    template = "the server is stopping; unacknowledged messages are back in their queues"
    advice = "Connect again when the server is back; unacknowledged messages are delivered again."


class ServerUnreachable(ServerError):
    code = "server-unreachable"
    template = "{url} cannot be reached: {why}"
    advice = "Start the server, or correct the URL. Nothing was changed."


class TooManyRequests(ServerError):
    code = "too-many-requests"
    template = "{who} has made too many requests; wait {seconds:.0f} s"
    advice = "Wait as long as the response's `Retry-After` says, and send fewer requests."
