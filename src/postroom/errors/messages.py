"""Errors about messages that are asked for, and about users and their rights."""

from __future__ import annotations

from postroom.errors.root import PostroomError


class PrincipalError(PostroomError):
    """Authentication failed, or a right is missing."""


class NotAllowed(PrincipalError):
    code = "not-allowed"
    template = "{principal} may not {action} in the domain {domain}; {advice}"
    advice = "Ask someone who has the permission, or change the `allow` statements of its flow."


class PrincipalInUse(PrincipalError):
    code = "principal-in-use"
    template = "{principal} is not removed: it is the login of the station {principal} on node {node}"
    advice = "Remove the station first: `postroom station remove NAME`. `postroom user list` has the other names."


class PrincipalRefused(PrincipalError):
    code = "principal-refused"
    template = "{principal}: {why}"
    advice = (
        "Give the right password, or log in again; `postroom principal list` shows who is registered. For a "
        "password that was forgotten: `postroom user add NAME --replace`, on the machine of the room."
    )


class RightMissing(PrincipalError):
    code = "right-missing"
    template = "{principal} may not {verb} {object}: {why}"
    advice = "Ask an operator; `postroom why-not USER VERB OBJECT` says which grants there are."


class TokenRefused(PrincipalError):
    code = "token-refused"
    template = "the token is refused: {why}"
    advice = "Get another token: `postroom token create USER NAME`, on the machine of the room."


class MessageError(PostroomError):
    """The requested message cannot be returned."""


class KeyInvalid(MessageError):
    code = "key-invalid"
    template = "{key!r} is not a message key; keys look like 00001.00042"
    advice = "Copy the key as `postroom peek` or `postroom list` shows it."


class MessageCorrupt(MessageError):
    code = "message-corrupt"
    template = (
        "message {key} in {queue} does not match its hash and was set aside, undelivered; the next one can be received"
    )
    advice = "Receive again for the next one. The cause may be a faulty disk, or a manual edit."
    happened = "yes"


class MessageGone(MessageError):
    code = "message-gone"
    template = "message {key} was processed and deleted; its history: postroom trace {key}"
    advice = "It was deleted; `postroom trace KEY` has its history. `postroom queue mode keep` keeps others."


class RedriveRefused(MessageError):
    """A failed message is sent again only once: a second time would process it twice."""

    code = "redrive-refused"
    template = "message {key} is not sent again: {why}"
    advice = "See what became of it: `postroom trace`. To send it again anyway: `postroom send`."


class MessageUnsound(MessageError):
    code = "message-unsound"
    template = (
        "message {key} in {queue} does not match its hash, so this read stopped; "
        "the option corrupt = skip leaves such messages out"
    )
    advice = "Read with the option `corrupt` = `skip`; for the cause see `message-corrupt`."


class MessageNotWaiting(MessageError):
    code = "message-not-waiting"
    template = "message {key} is not among {those}; find where it is with: postroom locate {key}"
    advice = "Find it: `postroom locate KEY` says where the message is, and `postroom trace KEY` how it got there."


class MessageUnknown(MessageError):
    code = "message-unknown"
    template = "no message has ever had the key {key} in this room"
    advice = "Check the key and the room (`--room`, `POSTROOM_URL`)."
