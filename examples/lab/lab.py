"""A day in the laboratory: requests and results meet, and the doctor gets what is out of range.

python examples/lab/lab.py
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import postroom

HERE = Path(__file__).parent
STATIONS = ("Reception", "Bench", "Archive", "Doctor")
REQUESTS = ((1, "Ann", "3.5", "5.1"), (2, "Bob", "3.5", "5.1"), (3, "Eve", "3.5", "5.1"), (4, "Ida", "3.5", "5.1"))
RESULTS = ((3, "2.9"), (1, "4.2"), (2, "6.0"))  # the fourth is not measured yet


def main(folder: Path) -> None:
    with postroom.open(folder / "lab.db") as room:
        desks = {name: room.stations.add(name, "secret") for name in STATIONS}
        room.load(HERE / "lab.form")
        reception, bench, doctor = desks["Reception"], desks["Bench"], desks["Doctor"]
        for sample, patient, low, high in REQUESTS:
            fields = {"Sample": sample, "Patient": patient, "Test": "potassium", "From": low, "To": high}
            reception.ship(reception.create("REQUEST", fields), "Bench")
        bench.get()
        for sample, measured in RESULTS:
            bench.create("RESULT", {"Sample": sample, "Measured": measured})
        room.run(until_idle=True)

        doctor.get()
        for image in doctor.query("REQUEST"):
            print(image.shown())
        states = {image.fields["Patient"]: image.fields["State"] for image in doctor.query("REQUEST")}
        assert states == {"Bob": "too high", "Eve": "too low"}
        where = {image.fields["Patient"]: image.place for image in reception.query("REQUEST", scope="global")}
        assert where == {"Ann": "mailbox:Archive", "Bob": "Doctor", "Eve": "Doctor", "Ida": "Bench"}


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as folder:
            main(Path(folder))
