"""An engine on real Spark under load: requests come in while it works them off, and are joined in slices.

``python -m tests.faults.engine_workload URL FOLDER NAME COUNT [MASTER [EXCHANGE]]`` prints ``begin request ID`` before
a send and ``ok request KEY ID`` once it was acknowledged, ``step N`` after each step and ``finished`` at the end. A
parent kills it, or something of it, and compares what was acknowledged with what the room holds.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import postroom
from postroom.engine.runner import Totals
from postroom.engine.spark.executor_store import SETTING
from postroom.room import Postroom

#: As in figure 7 of the text: a request is forked, each part is answered, and the answers are joined in a slice.
PROGRAM = """
create system errorqueue broken
create queue requests kind basic mode persistent
create queue finance kind basic mode persistent
create queue legal kind basic mode persistent
create queue crm kind basic mode persistent
create queue customer kind basic mode persistent
create queue book kind basic mode persistent
create queue later kind echo mode persistent
create queue reminders kind basic mode persistent
create queue broken kind basic mode persistent
create property requestID as xs:string fixed queue crm, customer value //id
create slicing requestMsgs on requestID
create rule fork for requests
if (/request) then (
  do enqueue <credit>{//id}<n>{xs:integer(//n)}</n></credit> into finance,
  do enqueue <export>{//id}</export> into legal,
  do enqueue <entry>{string(//id)}</entry> into book,
  do enqueue <late>{//id}</late> into later with target value "reminders" with timeout value 0)
create rule credit for finance if (/credit) then do enqueue <creditResult>{//id}</creditResult> into crm
create rule export for legal if (/export) then do enqueue <exportResult>{//id}</exportResult> into crm
create rule join for requestMsgs
if (qs:slice()/creditResult and qs:slice()/exportResult and not(qs:slice()/offer)) then
  do enqueue <offer>{(qs:slice()//id)[1]}</offer> into customer
create rule cleanup for requestMsgs
if (qs:slice()/offer) then do reset
"""


def say(*words: str) -> None:
    sys.stdout.write(" ".join(words) + "\n")  # one write: two threads speak
    sys.stdout.flush()


def is_bad(number: int) -> bool:
    return number % 10 == 7


def send(room: Postroom, name: str, count: int) -> None:
    for number in range(count):
        id = f"{name}-{number}"
        say("begin", "request", id)
        body = f"<request><id>{id}</id><n>{'x' if is_bad(number) else number}</n></request>"
        say("ok", "request", room.send("requests", body, format="xml", idempotency_key=id).key, id)


def work(url: str, folder: Path, name: str, count: int, master: str, way: str = "driver") -> None:
    program = folder / "program.demaq"
    program.write_text(PROGRAM)
    with postroom.open(url) as room:
        room.load(program)
        sender = threading.Thread(target=send, args=(room, name, count))
        sender.start()

        def progress(totals: Totals) -> None:
            say("step", str(totals.steps))

        while True:
            last = not sender.is_alive()
            room.run_until_idle(master=master, conf={SETTING: way}, step_messages=20, progress=progress)
            if last:
                break
        sender.join()


if __name__ == "__main__":
    url, folder, name, count, *master = sys.argv[1:]
    work(url, Path(folder), name, int(count), *(master or ["local[2]"]))
    say("finished")
