"""Errors of spheres and state machines."""

from __future__ import annotations

from postroom.errors.root import PostroomError


class SphereError(PostroomError):
    """The state of a sphere, or of another state machine, does not allow this."""


class CheckTooShort(SphereError):
    code = "check-too-short"
    template = (
        "a check every {check:g} s is too short: sphere {sphere} sends a heartbeat every {heartbeat:g} s. "
        "Check less often than the slowest heartbeat"
    )
    advice = "Give a longer `--check`, or start spheres with a faster heartbeat."


class EntityExists(SphereError):
    code = "entity-exists"
    template = "{entity} is in state {state} already; an entity has one token"
    advice = "Move the existing entity, or choose another id."


class EntityUnknown(SphereError):
    code = "entity-unknown"
    template = "there is no {entity} in any of these states: {states}"
    advice = "Start it first, or check the id: `machine.entities(STATE)` lists the entities in a state."


class HeartbeatTooSlow(SphereError):
    code = "heartbeat-too-slow"
    template = (
        "a heartbeat every {heartbeat:g} s is too slow: the compensation engine of this room checks every {check:g} s. "
        "Use a faster heartbeat, or check less often with: postroom compensate --check SECONDS"
    )
    advice = "Start the sphere with a shorter `heartbeat`, or compensate with a longer `--check`."


class NotInSphere(SphereError):
    code = "not-in-sphere"
    template = "message {key} was not sent in a sphere"
    advice = "Acknowledge only messages that have the property `sphere`."


class ParticipantInDoubt(SphereError):
    """The sphere is committed, but a participant that was prepared did not confirm its commit."""

    code = "participant-in-doubt"
    template = (
        "sphere {sphere} is committed, and {participant} has not confirmed its part: {why}. "
        "Settle it with: room.spheres.settle(participant)"
    )
    advice = "Call `room.spheres.settle(participant)` as soon as it is reachable; it then commits, too."
    happened = "yes"


class SphereAborted(SphereError):
    """The sphere was aborted instead of committed; what it had sent is undone."""

    code = "sphere-aborted"
    template = "sphere {sphere} was aborted: {reason}"
    advice = "Everything was undone. Remove the cause, and start a new sphere."


class SphereExists(SphereError):
    code = "sphere-exists"
    template = "sphere {sphere} already exists ({state}); an id can be used once"
    advice = "Choose another id; `postroom sphere show ID` shows the existing one."


class SphereOver(SphereError):
    """The owner came too late: the sphere has ended without it."""

    code = "sphere-over"
    template = "sphere {sphere} is {state}{reason}; nothing can be added to it"
    advice = "Somebody else has ended the sphere. Look with `postroom sphere show ID`, and start a new one."


class SphereUnknown(SphereError):
    code = "sphere-unknown"
    template = "there is no sphere {sphere}; list them with: postroom spheres"
    advice = "Find its id with `postroom spheres`."


class StateTaken(SphereError):
    code = "state-taken"
    template = "queue {queue} exists and is not a state of this machine; remove it, or rename the state"
    advice = "Remove the queue, or give the state of the machine another name."


class TransitionRefused(SphereError):
    code = "transition-refused"
    template = "{entity} is in state {state}; there is no transition to {goal}"
    advice = "Move it to a state that the machine allows from its current one."
