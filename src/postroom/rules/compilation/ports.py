"""Which endpoint a gateway queue belongs to: ``interface TRANSPORT port ENDPOINT``, both set by the operator.

With ``interface FILE.wsdl port PORT``, the port is one of the file and the endpoint of that name, which is SOAP.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from postroom.engine.schema_process import check_interface
from postroom.model.definitions import nearest
from postroom.model.ws_policy import check_reliable_policy, security_policy
from postroom.model.wsdl import Unusable
from postroom.rules.language.definitions import QueueDefinition
from postroom.rules.language.reader import RELIABLE
from postroom.store.tables.endpoints import ANSWER, FETCHED, IN, OUT, REPLY, Endpoint, Port

SECURITY = "WS-Security"
#: What a queue of a kind may be for its endpoint, the first that the endpoint does.
DIRECTIONS = {"outgoingGateway": (OUT, ANSWER, FETCHED), "incomingGateway": (IN, REPLY)}


def is_wsdl(interface: str) -> bool:
    return interface.lower().endswith(".wsdl")


def unusable(queue: QueueDefinition) -> str | None:
    """Why the WSDL or a policy of a queue is not usable; None if it is."""
    try:
        if queue.interface_text is not None:
            check_interface(queue.interface_text, queue.port or queue.name)
        elif queue.policies:
            raise Unusable(f"{queue.policies[0].extension} is for SOAP, and needs interface FILE.wsdl")
        for policy in queue.policies:
            if policy.extension == RELIABLE and policy.text is not None:
                check_reliable_policy(policy.text, str(policy.file))
            elif policy.extension == SECURITY:
                security_policy(policy.text or "", str(policy.file))
    except Unusable as error:
        where = f"{queue.interface}: " if queue.interface_text is not None else ""
        return f"{queue.name}: {where}{error}"
    return None


def port_of(queue: QueueDefinition, endpoints: Mapping[str, Endpoint]) -> Port | str | None:
    """The port of a queue; why it cannot have one; None if it needs none.

    An outgoing gateway without ``port`` uses the endpoint of its own name. An incoming one without ``port`` gets
    messages from inside the room.
    """
    if queue.kind not in DIRECTIONS:
        return None
    if queue.port is None and queue.interface is None and queue.kind == "incomingGateway":
        return None
    name = queue.port or queue.name
    endpoint = endpoints.get(name)
    if endpoint is None:
        advice = "; an operator adds it with: postroom gateway add"
        return f"{queue.name}: this room has no gateway {name}{nearest(name, endpoints)}{advice}"
    wanted = "soap" if queue.interface_text is not None else queue.interface
    if wanted is not None and wanted != endpoint.transport:
        return f"{queue.name}: the gateway {name} is {endpoint.transport}, not {wanted}"
    if endpoint.transport == "soap" and queue.interface_text is None:
        return f"{queue.name}: the gateway {name} is soap, and needs interface FILE.wsdl"
    does = next((direction for direction in DIRECTIONS[queue.kind] if direction in endpoint.does), None)
    if does is None:
        what = "sends nothing" if queue.kind == "outgoingGateway" else "gets nothing"
        return f"{queue.name}: the gateway {name} ({endpoint.transport}) {what}, as it was added"
    missing = _missing(queue, endpoint)
    if missing:
        return f"{queue.name}: its policy needs {', '.join(missing)} of the gateway {name}, which has none"
    return Port(queue.name, does, name, _terms(queue))


def _missing(queue: QueueDefinition, endpoint: Endpoint) -> list[str]:
    """Settings that the policies of a queue require and the endpoint lacks."""
    missing = []
    for policy in queue.policies:
        if policy.extension == SECURITY and policy.text is not None:
            wanted = security_policy(policy.text, str(policy.file))
            missing += [name for name in wanted.settings() if name not in endpoint.settings]
            if wanted.https and not str(endpoint.settings.get("address", "https:")).startswith("https:"):
                missing.append("an address with https")
    return missing


def _terms(queue: QueueDefinition) -> str | None:
    """The terms of a WSDL and its policies, as they are stored for senders and receivers."""
    if queue.interface_text is None:
        return None
    security = next((policy for policy in queue.policies if policy.extension == SECURITY), None)
    terms = {
        "wsdl": queue.interface_text,
        "port": queue.port or queue.name,
        "reliable": any(policy.extension == RELIABLE for policy in queue.policies),
        "security": None if security is None else [security.text, security.file],
    }
    return json.dumps(terms, ensure_ascii=False)


def ports_of(queues: Iterable[QueueDefinition], endpoints: Mapping[str, Endpoint]) -> list[Port]:
    """The ports of queues that have passed their checks."""
    return [port for queue in queues if isinstance(port := port_of(queue, endpoints), Port)]
