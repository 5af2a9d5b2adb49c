"""What a grant can allow: its verbs, and what each is granted for."""

from __future__ import annotations

EVERYTHING = "*"  # an object of a grant: all queues, spaces, stations
OPERATE = "operate"
VERBS = {
    "look": "queue",  # count, read without receiving, follow, show, trace
    "send": "queue",
    "receive": "queue",
    "manage": "queue",  # create, remove, hold, enable
    "publish": "space",
    "subscribe": "space",  # and receive as the subscriber
    "work": "station",  # everything that is done at a station
    "load": "definitions",
    "sphere": "spheres",  # open, send in, commit and abort spheres
    "measure": "room",  # numbers about the room, and nothing that messages say
    OPERATE: "room",  # everything
}
