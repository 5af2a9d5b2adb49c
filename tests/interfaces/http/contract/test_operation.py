"""What an operation takes is what the signature of its verb says."""

from __future__ import annotations

import pytest

from postroom.interfaces.http.contract.operation import ANY, Need
from postroom.interfaces.http.contract.operations import OPERATIONS


def named(name: str) -> dict[str, str]:
    operation = next(each for each in OPERATIONS if each.name == name)
    return {each.name: f"{each.where}{'!' if each.required else ''}" for each in operation.parameters}


@pytest.mark.parametrize(
    ("name", "taken"),
    [
        ("queues.set_mode", {"queue": "path!", "keep_processed": "body!"}),
        ("queues.peek", {"queue": "path!", "limit": "query", "where": "query", "after": "query"}),
        ("lease.fail", {"lease": "path!", "reason": "body!", "final": "body"}),
        ("definitions.check", {"files": "body!", "beside": "body"}),
        ("gateways.add", {"name": "body!", "transport": "body!", "settings": "body"}),
        ("consumers.fire", {}),
        ("flows.publish", {"space": "path!", "event": "body!", "idempotency_key": "header"}),
    ],
)
def test_parameters_come_from_the_signature(name: str, taken: dict[str, str]) -> None:
    assert named(name) == taken


def test_a_function_of_the_callers_machine_is_not_taken() -> None:
    assert not {"deliver", "progress", "master", "conf", "detached"} & {
        name for each in OPERATIONS for name in named(each.name)
    }


def test_rights_name_their_objects() -> None:
    needs = {each.name: each.needs for each in OPERATIONS}
    assert needs["consumers.move"] == (Need("manage", "queue"), Need("send", "to"))
    assert needs["client.receive"] == (Need("subscribe", ANY),)
    assert needs["journal.show"] == (Need("look", "key"),)
    assert needs["operations.overview"] == (Need("look", None),)


def test_null_says_something_only_where_the_verb_knows_it() -> None:
    operation = next(each for each in OPERATIONS if each.name == "consumers.set_policy")
    nullable = {each.name for each in operation.parameters if each.nullable}
    assert nullable == {"attempts", "dead_letters", "by", "max_messages", "max_bytes", "max_age"}
