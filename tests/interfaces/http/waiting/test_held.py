"""Spheres of clients: they live as long as their owner gives signs of life, by calls or by a connection."""

from __future__ import annotations

import gc
import threading
from time import monotonic, sleep

import httpx
import pytest
from tests.interfaces.http.conftest import Served

import postroom
from postroom import errors
from postroom.interfaces.http.waiting.held import HeldSpheres


def ended(served: Served, id: str) -> tuple[str, str | None]:
    """How a sphere has ended, when it has."""
    end = monotonic() + 60
    while served.room.spheres.show(id).sphere.state in ("ACTIVE", "ABORTING") and monotonic() < end:
        sleep(0.05)
    found = served.room.spheres.show(id).sphere
    return found.state, found.reason


def test_a_silent_owner_loses_its_sphere_and_one_that_beats_does_not(here: Served) -> None:
    here.room.queues.create("q")
    with here.client() as client:
        for id, seconds in (("silent", 1), ("alive", 4)):
            assert client.post("/spheres", json={"id": id, "heartbeat": seconds}).json()["id"] == id
        said = {"queue": "q", "body": "x", "compensation": {"body": "undo"}}
        assert client.post("/spheres/silent/messages", json=said).status_code == 200
        stop = threading.Event()

        def beat() -> None:
            while not stop.wait(0.2):
                assert client.post("/spheres/alive/heartbeat").json()["state"] == "ACTIVE"

        thread = threading.Thread(target=beat)
        thread.start()
        assert ended(here, "silent") == ("ABORTED", "its owner gave no sign of life for 1 s")
        stop.set()
        thread.join()
        assert here.room.count("q").queues[0].unprocessed == 0
        late = client.post("/spheres/silent/commit")
        assert (late.status_code, late.json()["code"]) == (409, "sphere-over")
        assert client.post("/spheres/alive/commit").json()["state"] == "COMMITTED"
        again = client.post("/spheres/alive/commit").json()
        assert (again["code"], again["facts"]["state"]) == ("sphere-over", "COMMITTED")


def test_a_connection_that_closes_takes_its_sphere_with_it(here: Served) -> None:
    with here.client() as client, here.client() as other:
        client.post("/spheres", json={"id": "one", "heartbeat": 4})
        with client.stream("GET", "/spheres/one/heartbeat") as beating:
            lines = beating.iter_lines()
            assert next(lines) == "event: heartbeat"
            assert next(lines) == 'data: {"state": "ACTIVE"}'
            for _ in range(5):  # which takes longer than a silent owner may be
                assert next(line for line in lines if line.startswith("event:"))
            assert other.post("/spheres/one/heartbeat").json()["state"] == "ACTIVE"
        assert ended(here, "one") == ("ABORTED", "the connection of its owner was closed")


def test_nobody_acts_in_the_sphere_of_another(here: Served) -> None:
    here.room.queues.create("q")
    ann = here.user("ann", ("sphere", "*"), ("send", "q"))
    bob = here.user("bob", ("sphere", "*"), ("send", "q"))
    with postroom.open(here.url, token=ann) as hers, here.client(bob) as his:
        sphere = hers.sphere("hers", heartbeat=4)
        refused = his.post("/spheres/hers/messages", json={"queue": "q", "body": "x"})
        assert (refused.status_code, refused.json()["code"]) == (409, "sphere-over")
        assert his.post("/spheres/hers/commit").status_code == 409
        assert his.post("/spheres/nowhere/commit").status_code == 404
        with pytest.raises(errors.RightMissing):
            sphere.send("other", "x")
        with pytest.raises(errors.RightMissing):  # what undoes it goes to a queue, too
            sphere.send("q", "x", compensation=postroom.Compensation("undo", queue="other"))
        sphere.send("q", "x")
        sphere.commit()
    assert here.room.count("q").queues[0].unprocessed == 1


def test_a_thread_that_ends_and_a_server_that_stops_abort_their_spheres(here: Served) -> None:
    kept = []
    with postroom.open(here.url, token=here.user("ann", ("sphere", "*"))) as room:

        def program() -> None:
            room.sphere("dropped", heartbeat=1)
            kept.append(room.sphere("kept", heartbeat=1))

        thread = threading.Thread(target=program)
        thread.start()
        thread.join()
        gc.collect()
        assert ended(here, "dropped")[0] == "ABORTED"
        assert ended(here, "kept")[0] == "ABORTED"
    spheres = HeldSpheres()
    held = spheres.open(here.room, "boss", {"id": "held"})
    assert held.do(lambda sphere: sphere.id).result(30) == "held"
    spheres.close()
    assert ended(here, "held") == ("ABORTED", "the server was stopped")
    with pytest.raises(errors.SphereOver):
        held.do(lambda sphere: sphere.id).result(30)
    with pytest.raises(errors.SphereExists):
        spheres.open(here.room, "boss", {"id": "held"})


def test_an_aborted_sphere_says_why(here: Served) -> None:
    with here.client() as client:
        client.post("/spheres", json={"id": "x"})
        assert client.post("/spheres/x/abort", json={"reason": "too late"}).json()["state"] == "ABORTED"
        refused: httpx.Response = client.post("/spheres/x/commit")
        assert "too late" in refused.json()["detail"]
