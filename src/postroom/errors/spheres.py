"""Errors of spheres and of machines of states."""

from __future__ import annotations

from postroom.errors.root import PostroomError


class SphereError(PostroomError):
    """A sphere, or another machine of states, does not allow this."""


class CheckTooShort(SphereError):
    code = "check-too-short"
    template = (
        "a check every {check:g} s is too short: sphere {sphere} sends a heartbeat every {heartbeat:g} s. "
        "Check less often than the slowest heartbeat"
    )


class EntityExists(SphereError):
    code = "entity-exists"
    template = "{entity} is in state {state} already; an entity has one token"


class EntityUnknown(SphereError):
    code = "entity-unknown"
    template = "there is no {entity} in any of these states: {states}"


class HeartbeatTooSlow(SphereError):
    code = "heartbeat-too-slow"
    template = (
        "a heartbeat every {heartbeat:g} s is too slow: the compensation engine of this room checks every {check:g} s. "
        "Beat faster, or check less often with: postroom compensate --check SECONDS"
    )


class NotInSphere(SphereError):
    code = "not-in-sphere"
    template = "message {key} was not sent in a sphere"


class ParticipantInDoubt(SphereError):
    """The sphere is committed, and one who was prepared for it did not say that it has committed, too."""

    code = "participant-in-doubt"
    template = (
        "sphere {sphere} is committed, and {participant} has not confirmed its part: {why}. "
        "Settle it with: room.spheres.settle(participant)"
    )
    happened = "yes"


class SphereAborted(SphereError):
    """The sphere was to be committed and was aborted instead; what it had sent is undone."""

    code = "sphere-aborted"
    template = "sphere {sphere} was aborted: {reason}"


class SphereExists(SphereError):
    code = "sphere-exists"
    template = "sphere {sphere} already exists ({state}); an id can be used once"


class SphereOver(SphereError):
    """A late owner: the sphere has come to its end without it."""

    code = "sphere-over"
    template = "sphere {sphere} is {state}{reason}; nothing can be added to it"


class SphereUnknown(SphereError):
    code = "sphere-unknown"
    template = "there is no sphere {sphere}; list them with: postroom spheres"


class StateTaken(SphereError):
    code = "state-taken"
    template = "queue {queue} is there and is not a state of this machine; remove it, or name the state differently"


class TransitionRefused(SphereError):
    code = "transition-refused"
    template = "{entity} is in state {state}; there is no transition to {goal}"
