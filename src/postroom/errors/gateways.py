"""Errors of gateways: wrong endpoints, and partners that cannot be reached."""

from __future__ import annotations

from postroom.errors.root import PostroomError


class GatewayError(PostroomError):
    """An endpoint cannot be used as requested."""


class ArrivalRefused(GatewayError):
    code = "arrival-refused"
    template = "{gateway} does not take this: {why}"
    advice = "Change what is sent to what the gateway takes, as the message says."


class ArrivalTooEarly(GatewayError):
    """A message of a sequence is too far ahead of a missing one."""

    code = "arrival-too-early"
    template = "{gateway} takes {number} when what comes before it has come; it waits for {next}"
    advice = "Send the messages that are missing again; then this one."


class GatewayExists(GatewayError):
    code = "gateway-exists"
    template = "there is a gateway {gateway} already; remove it first with: postroom gateway remove {gateway}"
    advice = "Choose another name, or remove the gateway that is there."


class GatewayInUse(GatewayError):
    code = "gateway-in-use"
    template = "the gateway {gateway} is used by {queues}; load a program without that first"
    advice = "Load a program whose queues do not name the gateway, and remove it then."


class GatewayInvalid(GatewayError):
    code = "gateway-invalid"
    template = "gateway {gateway}: {why}"
    advice = "Correct the setting that is named; docs/guide/gateways.md lists those of each transport."


class GatewayUnknown(GatewayError):
    code = "gateway-unknown"
    template = "this room has no gateway {gateway}{nearest}"
    advice = "Look at `postroom gateway list`, or add it with `postroom gateway add`."


class GatewayUnreachable(GatewayError):
    code = "gateway-unreachable"
    template = "the partner of {gateway} does not answer: {why}"
    advice = "Look at the address, the network and the partner; messages wait and are tried again."
