"""Errors over HTTP: ``application/problem+json`` with our code and advice, and back to the error."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import ceil, isfinite
from typing import Any

from postroom import errors
from postroom.errors import PostroomError, ServerFailed, every_error

MEDIA_TYPE = "application/problem+json"
_KINDS = {kind.code: kind for kind in every_error()}
#: Of an error whose status no other rule says.
_REFUSED = 409
#: The first that fits.
_STATUS: tuple[tuple[tuple[type[PostroomError], ...], int], ...] = (
    ((errors.TokenRefused,), 401),
    ((errors.RightMissing, errors.NotAllowed, errors.PrincipalRefused, errors.RequestRefused), 403),
    ((errors.PasswordWrong, errors.PasswordMissing, errors.PasswordNeeded, errors.QueueOwned), 403),
    ((errors.ResourceUnknown, errors.QueueUnknown, errors.MessageUnknown, errors.DefinitionUnknown), 404),
    ((errors.MessageNotWaiting,), 404),
    ((errors.StationUnknown, errors.SphereUnknown, errors.TypeUnknown, errors.NodeUnknown, errors.OutboxUnknown), 404),
    ((errors.TableUnknown, errors.DossierUnknown, errors.EntityUnknown, errors.CollectionUnknown), 404),
    ((errors.GatewayUnknown,), 404),
    ((errors.MethodUnknown,), 405),
    ((errors.MessageGone,), 410),
    ((errors.RequestTooLarge, errors.BodyTooLarge), 413),
    ((errors.TooManyRequests,), 429),
    ((errors.RequestHeadTooLarge,), 431),
    (
        (
            errors.ArgumentInvalid,
            errors.RequestInvalid,
            errors.EntryInvalid,
            errors.KeyInvalid,
            errors.NameInvalid,
            errors.BodyError,
        ),
        400,
    ),
    ((errors.LanguageUnknown, errors.DescriptionInvalid, errors.FlowInvalid, errors.FormInvalid), 422),
    ((errors.ProgramInvalid, errors.TypeInvalid, errors.SchemaMalformed, errors.FunctionUnknown), 422),
    ((errors.FileUnreadable,), 422),
    ((errors.StoreFull,), 507),
    ((errors.StoreBusy, errors.StoreStopped, errors.StoreUnavailable, errors.NodeDown, errors.RoomMissing), 503),
    ((errors.ServerFailed, errors.CommitUnknown, errors.StoreReplaced, errors.StoreCorrupt), 500),
)


def status_of(kind: type[PostroomError]) -> int:
    return next((status for kinds, status in _STATUS if issubclass(kind, kinds)), _REFUSED)


def problem(error: PostroomError) -> tuple[int, bytes]:
    """The status and the document of an error."""
    status = status_of(type(error))
    document: dict[str, Any] = {
        "type": f"urn:postroom:error:{error.code}",
        "title": error.code.replace("-", " "),
        "status": status,
        "detail": str(error),
        "code": error.code,
        "happened": error.happened,
        "advice": error.advice,
        "facts": {name: _plain(value) for name, value in error.facts.items()},
    }
    if "problems" in error.facts:
        document["places"] = [str(fact) for fact in error.facts["problems"]]
    return status, json.dumps(document, ensure_ascii=False).encode(errors="backslashreplace")


def headers_of(error: PostroomError) -> list[tuple[bytes, bytes]]:
    """The response headers of an error."""
    more = [(b"content-type", MEDIA_TYPE.encode())]
    if isinstance(error, errors.TokenRefused):
        more.append((b"www-authenticate", b"Bearer"))
    if isinstance(error, errors.TooManyRequests):
        more.append(retry_after(error))
    if isinstance(error, errors.MethodUnknown):
        more.append((b"allow", str(error.facts["allowed"]).encode()))
    return more


def retry_after(error: errors.TooManyRequests) -> tuple[bytes, bytes]:
    """The Retry-After header, in whole seconds, rounded up."""
    return b"retry-after", str(max(1, ceil(error.facts["seconds"]))).encode()


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (str, int, bool)) or (isinstance(value, float) and isfinite(value)):
        return value
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return str(value)


def error_of(document: Mapping[str, Any]) -> PostroomError:
    """The error of a server's document; one that this version does not know keeps the server's text."""
    kind = _KINDS.get(str(document.get("code")))
    facts = document.get("facts")
    try:
        if kind is not None and isinstance(facts, dict):
            return kind(**facts)
    except (LookupError, ValueError, TypeError, AttributeError):
        pass
    return ServerFailed(incident=str(document.get("detail") or document.get("title") or "no incident"))
