"""Figs. 2 to 4 of the text, from their files as they are drawn."""

from __future__ import annotations

from pathlib import Path

import postroom
from postroom.stations.queries import conditions

OFFICE = Path(__file__).parents[2] / "examples" / "office"
TYPE = "MEETING ANNOUNCEMENT"


def test_the_figures_work_as_drawn(url: str) -> None:
    with postroom.open(url) as room:
        room.load(OFFICE / "meeting.form")
        form = room.stations.form(TYPE).form
        empty = form.shown()
        drawn = [line for line in (OFFICE / "meeting.form").read_text().splitlines() if line.startswith("|")]
        assert empty.splitlines()[3:-1] == drawn
        dennis, fausto = room.stations.add("Dennis", "pw"), room.stations.add("Fausto", "pw")
        key = dennis.create(TYPE, form.read((OFFICE / "figure-3.txt").read_text()))
        filled = dennis.show(key).shown().splitlines()
        assert filled[3] == f"| To: Simon___________________  KEY: {key}__ |"
        assert "| Remarks: there are a few new features I would___ |" in filled
        assert "|          like to add to the system______________ |" in filled
        assert "| Meeting Date: 1981-08-21________________________ |" in filled
        assert form.read("\n".join(filled)) == {
            "To": "Simon",
            "From": "Dennis",
            "KEY": key,
            "DATE": str(dennis.show(key).fields["DATE"]),
            "Subject": "office automation project",
            "Remarks": "there are a few new features I would like to add to the system",
            "Meeting Date": "1981-08-21",
            "Meeting Time": "10:00:00",
            "Meeting Location": "rm 211",
        }
        wanted = [
            fausto.create(TYPE, To="Simon", Subject=subject)
            for subject in ("office automation", "distributed database", "office automation project")
        ]
        dennis.create(TYPE, To="Simon", Subject="office automation")
        fausto.ship(wanted[1], "Dennis")
        dennis.get()
        sketch, _ = conditions.drawn(form, (OFFICE / "figure-4.txt").read_text(), "figure-4.txt")
        assert sketch == {"From": "Fausto", "Subject": '"office automation" "distributed database"'}
        assert [image.key for image in fausto.query(TYPE, sketch)] == [wanted[0]]
        assert [image.key for image in dennis.query(TYPE, sketch)] == [wanted[1]]
