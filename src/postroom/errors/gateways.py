"""Errors of gateways: wrong endpoints, and partners that cannot be reached."""

from __future__ import annotations

from postroom.errors.root import PostroomError


class GatewayError(PostroomError):
    """An endpoint cannot be used as requested."""


class ArrivalRefused(GatewayError):
    code = "arrival-refused"
    template = "{gateway} refuses this: {why}"
    advice = "Send what the gateway accepts, as the message says."


class ArrivalTooEarly(GatewayError):
    """A message of a sequence is too far ahead of a missing one."""

    code = "arrival-too-early"
    template = "{gateway} got {number} too early; it waits for {next} first"
    advice = "Send the missing messages again, then this one."


class GatewayExists(GatewayError):
    code = "gateway-exists"
    template = "gateway {gateway} already exists; remove it first with: postroom gateway remove {gateway}"
    advice = "Choose another name, or remove the existing gateway."


class GatewayInUse(GatewayError):
    code = "gateway-in-use"
    template = "the gateway {gateway} is used by {queues}; load a program without it first"
    advice = "Load a program whose queues do not name the gateway, and remove it then."


class GatewayInvalid(GatewayError):
    code = "gateway-invalid"
    template = "gateway {gateway}: {why}"
    advice = "Correct the given setting; docs/guide/gateways.md lists those of each transport."


class GatewayUnknown(GatewayError):
    code = "gateway-unknown"
    template = "this room has no gateway {gateway}{nearest}"
    advice = "Find it with `postroom gateway list`, or add it with `postroom gateway add`."


class GatewayUnreachable(GatewayError):
    code = "gateway-unreachable"
    template = "the partner of {gateway} does not answer: {why}"
    advice = "Check the address, the network and the partner; messages wait and are retried."
