"""Errors of messages that are looked for, and of whoever asks."""

from __future__ import annotations

from postroom.errors.root import PostroomError


class PrincipalError(PostroomError):
    """Someone is not who they say, or may not do what they want."""


class NotAllowed(PrincipalError):
    code = "not-allowed"
    template = "{principal} may not {action} in the domain {domain}; {advice}"


class PrincipalRefused(PrincipalError):
    code = "principal-refused"
    template = "{principal}: {why}"


class MessageError(PostroomError):
    """A message was asked for that cannot be given."""


class KeyInvalid(MessageError):
    code = "key-invalid"
    template = "{key!r} is not a message key; keys look like 00001.00042"


class MessageCorrupt(MessageError):
    code = "message-corrupt"
    template = (
        "message {key} in {queue} does not match its hash and was set aside, undelivered; the next one can be received"
    )
    happened = "yes"


class MessageGone(MessageError):
    code = "message-gone"
    template = "message {key} was processed and deleted; its history: postroom trace {key}"


class MessageUnsound(MessageError):
    code = "message-unsound"
    template = (
        "message {key} in {queue} does not match its hash, so this read stopped; "
        "the option corrupt = skip leaves such messages out"
    )


class MessageUnknown(MessageError):
    code = "message-unknown"
    template = "no message has ever had the key {key} in this room"
