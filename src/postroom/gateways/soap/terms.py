"""The program's settings of a port: its interface and policies, as the room stores them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache

from postroom.engine.schema_process import SchemaTooSlow, check_bounded
from postroom.errors import BodyError, SchemaInvalid
from postroom.model.soap import name_of
from postroom.model.ws_policy import SecurityPolicy, security_policy
from postroom.model.wsdl import Contract, Operation, contract_of


@dataclass(frozen=True, slots=True)
class Terms:
    wsdl: str
    contract: Contract
    reliable: bool
    security: SecurityPolicy | None

    def operation(self, body: str) -> Operation:
        """The operation of a message; raises ``SchemaInvalid`` if it fits none."""
        name = name_of(body)
        operation = self.contract.sending(name)
        if operation is None:
            known = ", ".join(self.contract.operations)
            raise SchemaInvalid(why=f"no operation of {self.contract.port} has the message {name}; there are {known}")
        _check(self.contract.schema, body)
        return operation

    def is_fault(self, body: str) -> bool:
        """Whether an answer is a fault; raises ``SchemaInvalid`` if it is not an answer."""
        name, answers = name_of(body), self.contract.answers()
        if name not in answers:
            raise SchemaInvalid(why=f"{name} is no answer of {self.contract.port}; there are {', '.join(answers)}")
        _check(self.contract.schema, body)
        return answers[name]

    def check_reply(self, operation: Operation, body: str) -> BodyError | None:
        """Why a body is not a reply of an operation; None if it is one."""
        try:
            if name_of(body) != operation.output:
                raise SchemaInvalid(why=f"{name_of(body)} is no reply of {operation.name}")
            _check(self.contract.schema, body)
        except SchemaInvalid as error:
            return error
        return None


def _check(schema: str, body: str) -> None:
    try:
        check_bounded(schema, body)
    except SchemaTooSlow as slow:
        raise SchemaInvalid(why=str(slow)) from None


@lru_cache(maxsize=64)
def terms_of(text: str) -> Terms:
    document = json.loads(text)
    security = document["security"]
    return Terms(
        document["wsdl"],
        contract_of(document["wsdl"], document["port"]),
        document["reliable"],
        None if security is None else security_policy(*security),
    )
