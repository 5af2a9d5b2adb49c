"""The whole interface, from its own description: seeded requests of schemathesis, right and wrong.

Nothing is a failure of the server, an answer is what the description says, and no right is ignored.
"""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from tests.interfaces.http.conftest import Served
from tests.interfaces.http.contract.test_operations import World

from postroom.interfaces.http.contract import openapi
from postroom.interfaces.http.contract.operations import OPERATIONS
from postroom.interfaces.http.handling.streams import STREAMS

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
#: They end what the others need, or take long: the other tests of this folder have them.
LEFT_OUT = {"access.revoke_token", "access.withdraw", "queues.receive", "spheres.compensate", "station.sql"}

#: The whole, in parts that can be run one by one.
PARTS = 6


def _ask(served: Served, operation: Any, examples: int) -> int:
    """Requests to one operation, each with a token, and without; answers with how many."""
    asked = 0

    @seed(4711)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=False,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=st.one_of(_strategies(operation)))
    def ask(case: Any) -> None:
        nonlocal asked
        asked += 1
        headers = {"Authorization": f"Bearer {served.token}"}
        case.headers = {name: value for name, value in (case.headers or {}).items() if name.lower() != "authorization"}
        response = case.call(base_url=served.url, headers=headers, timeout=30)
        case.validate_response(response, checks=CHECKS[1:] if _tells_of_another(operation, response) else CHECKS)
        if asked % 5 == 0:
            bare = case.call(base_url=served.url, headers={"Authorization": "Bearer none"}, timeout=30)
            assert bare.status_code in (401, 429), f"{case.method} {case.path} ignores who asks"

    ask()
    return asked


def _tells_of_another(operation: Any, response: Any) -> bool:
    """Whether it is not this server that fails, but the database that the request names."""
    names_one = operation.definition.raw["operationId"] == "spheres.settle_database"
    return bool(names_one and response.status_code == 503 and response.json()["code"] == "store-unavailable")


def _strategies(operation: Any) -> list[Any]:
    from schemathesis import GenerationMode

    found = []
    for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
        found.append(operation.as_strategy(generation_mode=mode))
    return found


def _whole(world: World, examples: int, part: int = 0, parts: int = 1) -> tuple[int, int]:
    served, _ = world
    schema = schemathesis.openapi.from_dict(openapi.document())
    operations: list[Any] = [each.ok() for each in schema.get_all_operations() if isinstance(each, Ok)]
    assert len(operations) == len(OPERATIONS) + len(STREAMS), "none is forgotten"
    operations = [each for each in operations if not each.definition.raw["operationId"].startswith("streams.")]
    operations = operations[part::parts]
    asked = 0
    for operation in operations:
        if operation.definition.raw["operationId"] not in LEFT_OUT:
            asked += _ask(served, operation, examples)
    with served.client() as client:
        assert client.get("/health/ready").status_code == 200
    return len(operations), asked


def test_a_slice_of_requests_to_every_operation(world: World) -> None:
    operations, asked = _whole(world, 3)
    assert asked >= 2 * (operations - len(LEFT_OUT))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_many_requests_to_every_operation(world: World, part: int) -> None:
    operations, asked = _whole(world, 200, part, PARTS)
    print(f"{asked} requests to {operations} operations")
    assert asked >= 50 * (operations - len(LEFT_OUT))
