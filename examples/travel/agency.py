"""An agency books a flight, a hotel and a car in one sphere, and commits when its customer has answered.

Whatever happens before that, also the end of this process, undoes what was booked. See examples/tour.py, chapter 6.

python examples/travel/agency.py TRIP
"""

from __future__ import annotations

import sys

import postroom

BOOKINGS = (
    ("flights", "a seat to Lisbon", "cancel the seat"),
    ("hotels", "a room for two nights", "cancel the room"),
    ("cars", "a small car", "cancel the car"),
)


def book(trip: str, room: postroom.Postroom) -> None:
    with room.sphere(trip, heartbeat=0.5) as sphere:
        for queue, order, undo in BOOKINGS:
            sphere.send(queue, f"{trip}: {order}", compensation=f"{trip}: {undo}")
        sphere.send("letters", f"{trip}: your trip is booked", when="commit")
        print(f"{trip}: all is booked, the customer is asked", flush=True)
        room.receive("answers", wait=60.0)


if __name__ == "__main__":
    with postroom.open("postroom.db") as room:
        for queue in ("flights", "hotels", "cars", "letters", "answers"):
            room.queues.create(queue, exist_ok=True)
        book(sys.argv[1], room)
