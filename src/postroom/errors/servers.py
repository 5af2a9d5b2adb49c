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
    advice = "Repeat the call with the same idempotency key; or look what is there, and then decide."
    happened = "unknown"


class ClientSlow(ServerError):
    code = "client-slow"
    template = "the client is too slow: {why}"
    advice = "Read faster, send heart-beats in time, or ask for fewer messages with `prefetch-count`."


class MethodUnknown(ServerError):
    code = "method-unknown"
    template = "{method} is not possible at {path}, but {allowed}"
    advice = "Use one of the methods that are named; `/openapi.json` has what each path does."


class NotRemote(ServerError):
    code = "not-remote"
    template = "{what} is not possible through a server; do it on the machine of the room, with its own URL"
    advice = "Run the command where the room is, with `--room` and its path or database."


class RequestHeadTooLarge(ServerError):
    code = "request-head-too-large"
    template = "the head of the request has more than {limit}"
    advice = "Send a shorter address, and less in its head; long things go into the body."


class RequestInvalid(ServerError):
    code = "request-invalid"
    template = "{where}: {why}"
    advice = "Correct the place that is named; `/openapi.json` of the server says what an operation takes."


class RequestRefused(ServerError):
    """Cross-site request: a page of another site may have sent it in the name of a signed-in user."""

    code = "request-refused"
    template = "the request is refused: {why}"
    advice = "Open the page itself, and do it there. A program uses a token: `postroom token create`."


class RequestTooLarge(ServerError):
    code = "request-too-large"
    template = "the request is larger than {limit} bytes"
    advice = "Send less in one request; `/openapi.json` and the page of limits say how much."


class ResourceUnknown(ServerError):
    code = "resource-unknown"
    template = "nothing is at {method} {path}"
    advice = "Look at `/openapi.json` for the paths and methods that there are."


class ServerExposed(ServerError):
    code = "server-exposed"
    template = "{host} can be reached from other machines, so the server does not start: {why}"
    advice = "Give a certificate with its key, and add a user with a grant; or listen on 127.0.0.1 only."


class ServerFailed(ServerError):
    code = "server-failed"
    template = "the server failed at this request; its log says why, under {incident}"
    advice = "Look into the server's log, and check what has happened before you repeat the request."
    happened = "unknown"


class ServerStopping(ServerError):
    code = "server-stopping"
    template = "the server stops; what was not acknowledged is in its queue again"
    advice = "Connect again when the server is back; what was not acknowledged comes again."


class ServerUnreachable(ServerError):
    code = "server-unreachable"
    template = "{url} cannot be reached: {why}"
    advice = "Start the server, or correct the URL. Nothing was changed."


class TooManyRequests(ServerError):
    code = "too-many-requests"
    template = "{who} has made too many requests; wait {seconds:.0f} s"
    advice = "Wait as long as the answer's `Retry-After` says, and send fewer requests."
