"""Spheres of a room behind a server are those of a room that is here."""

from __future__ import annotations

import pytest
from tests.interfaces.http.conftest import Two, numbers

from postroom import errors
from postroom.spheres.sending import Compensation


def test_a_sphere_commits_what_was_sent_and_aborts_what_failed(two: Two) -> None:
    tickets, hotels = two.queue(), two.queue()
    id = f"trip{next(numbers)}"
    with two.it.sphere(id, heartbeat=600) as sphere:
        sent = sphere.send(tickets, {"seats": 2}, compensation=Compensation("no seats", queue=hotels))
        assert sent.remembered is not None
        sphere.send(hotels, "a room", when="commit")
        assert sphere.state == "ACTIVE"
    assert two.it.spheres.show(id).sphere.state == "COMMITTED"
    assert [each.body for each in two.it.peek(hotels)] == ["a room"]
    with pytest.raises(KeyError), two.it.sphere(f"{id}b", heartbeat=600) as failed:
        failed.send(tickets, "two more", compensation="none", on_commit=hotels)
        taken = failed.receive(hotels)
        assert taken is not None
        raise KeyError("no room")
    assert two.it.spheres.show(f"{id}b").sphere.state == "ABORTED"
    assert [each.body for each in two.it.peek(hotels)] == ["a room"]
    with pytest.raises(errors.SphereExists):
        two.it.sphere(id)
    with pytest.raises(errors.SphereOver):
        sphere.send(tickets, "late")


def test_recipients_of_a_sphere_acknowledge_or_vote_against_it(two: Two) -> None:
    queue, id = two.queue(), f"vote{next(numbers)}"
    sphere = two.it.sphere(id, heartbeat=600, commit_within=60)
    sphere.send(queue, "please")
    sphere.require(queue, processing_within=30)
    message = two.it.receive(queue).message
    assert message is not None
    assert message.membership.id == id
    message.acknowledge(processed=True)
    sphere.commit()
    other = two.it.sphere(f"{id}b", heartbeat=600)
    other.send(queue, "please", compensation="never mind")
    message = two.it.receive(queue).message
    assert message is not None
    message.membership.abort("the house is full")
    with pytest.raises((errors.SphereAborted, errors.SphereOver)):
        other.commit()
    assert two.it.spheres.show(f"{id}b").sphere.reason == "the house is full"
    assert two.it.spheres.compensate(3600.0).spheres >= 0


@pytest.mark.parametrize("undo", [{"To": "Jack", "Text": "stay"}, Compensation({"To": "Jack", "Text": "stay"})])
def test_a_form_that_is_mailed_is_undone_by_another_one(two: Two, undo: object) -> None:
    john, jack = (two.it.stations.admitted(name) for name in ("John", "Jack"))
    before = {each.key for each in jack.mail()}
    with pytest.raises(KeyError), two.it.sphere(f"mail{next(numbers)}", heartbeat=600) as sphere:
        sent = sphere.mail(john, "Jack", "MEMO", {"To": "Jack", "Text": "come"}, compensation=undo)
        assert sent.remembered is not None
        raise KeyError("no room")
    assert {each.key for each in jack.mail()} == before, "nobody has seen it: both are gone"


def test_a_body_of_bytes_is_undone_by_one_of_bytes(two: Two) -> None:
    queue = two.queue()
    with pytest.raises(KeyError), two.it.sphere(f"bytes{next(numbers)}", heartbeat=600) as sphere:
        sphere.send(queue, b"come", compensation=b"stay")
        assert two.it.receive(queue).message is not None
        raise KeyError("no room")
    assert [each.body for each in two.it.peek(queue)] == ["stay"]
