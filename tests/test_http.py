"""A room as an application that others mount."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import anyio
import httpx
import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.routing import Mount

import postroom
import postroom.http
from postroom.errors import TooManyRequests
from postroom.interfaces.http.contract import openapi


def test_a_room_is_mounted_below_a_path(sqlite_url: str) -> None:
    async def ask() -> tuple[int, int]:
        app = postroom.http.app(room)
        whole = Starlette(routes=[Mount("/room", app=app)])
        transport = httpx.ASGITransport(whole)
        async with httpx.AsyncClient(transport=transport, base_url="http://x/room") as client:
            headers = {"authorization": f"Bearer {token}"}
            found = await client.get("/queues", headers=headers)
            refused = await client.get("/queues")
        await app.stop()
        return found.status_code, refused.status_code

    with postroom.open(sqlite_url) as room:
        room.flows.add_principal("ann", "secret")
        room.access.grant("ann", "look")
        token = room.access.create_token("ann", "x")
        assert anyio.run(ask) == (200, 401)


@pytest.mark.parametrize("mount", ["", "/room", "/a b/room"])
def test_the_description_of_a_mounted_room_leads_to_it(sqlite_url: str, mount: str) -> None:
    """It named no server, so that its readers asked at the root of the host, where another application is."""

    async def ask() -> tuple[dict[str, Any], int]:
        app = postroom.http.app(room)
        transport = httpx.ASGITransport(_below(mount, app))
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
            document = (await client.get(f"{mount}/openapi.json")).json()
            (server,) = document.get("servers", [{"url": ""}])
            asked = await client.get(f"{server['url']}/queues")
        await app.stop()
        return document, asked.status_code

    with postroom.open(sqlite_url) as room:
        document, status = anyio.run(ask)
    assert status == 401, "the room asks who it is"
    assert ("servers" in document) == bool(mount)
    assert document | {"servers": None} == openapi.document() | {"servers": None}


def _below(mount: str, app: Any) -> Any:
    """The application below a path, as FastAPI mounts it; two levels are two mounts."""
    for part in reversed(mount.split("/")[1:]):
        whole = FastAPI()
        whole.mount(f"/{part}", app)
        app = whole
    return app


def test_an_error_is_answered_as_by_the_server(sqlite_url: str) -> None:
    with postroom.open(sqlite_url) as room:
        room.queues.create("q")
        room.send("q", "x", idempotency_key="1")
        with pytest.raises(postroom.PostroomError) as reused:
            room.send("q", "y", idempotency_key="1")
    status, document, headers = postroom.http.problem(reused.value)
    assert (status, headers) == (400, {"content-type": "application/problem+json"})
    told = json.loads(document)
    assert (told["code"], told["happened"], told["advice"]) == ("argument-invalid", "no", reused.value.advice)
    status, _, headers = postroom.http.problem(TooManyRequests(who="ann", seconds=1.5))
    assert (status, headers["retry-after"]) == (429, "2")


@pytest.mark.parametrize("name", ["http.app", "aio.open", "errors.PostroomError"])
def test_a_module_of_users_needs_no_import_of_its_own(name: str) -> None:
    asked = [sys.executable, "-c", f"import postroom; print(postroom.{name}.__name__)"]
    ran = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=False)
    assert (ran.stdout.strip(), ran.returncode) == (name.rpartition(".")[2], 0), ran.stderr
