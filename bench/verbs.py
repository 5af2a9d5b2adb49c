"""Measure what each verb of the command line costs: ``python bench/verbs.py [RUNS]``.

A verb starts a process of its own; what is told is its processor time, the least of some runs, and its seconds beside.
Verbs that start Spark, and those that run until they are stopped, are not here.
"""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import postroom

FORM = """type ORDER
| No: ________ Amount: _________ To: _________ |
field No     string required
field Amount int    free
field To     string free
index No

procedure pay at Bob
  precondition pre : ORDER
    To: Bob
  action act on pre
    Amount: 1
  destination to on pre copy 0 ship Ann

counter front at Ann takes ORDER from orders
"""
RULES = """create queue in kind basic mode persistent
create queue out kind basic mode persistent
create rule pass for in if (/m) then do enqueue <r>{string(/m)}</r> into out
"""
FLOW = """domain d
space S : [n: int]
space T : [n: int]
arc a : S -> T transform [n: x] => [n: x + 1]
"""
#: What makes the room, one after another.
SETUP = """
queue create q
queue create r
queue create orders
node add north north.db
station add Ann
station add Bob
station add Cid --node north
load p.demaq
load g.flow
load o.form
send q --body x
send q --body y
publish S '{"n": 1}'
send in --format xml --body '<m>1</m>'
create ORDER No=1 --as Ann
"""
#: What is measured, in a room that each leaves as good as it was.
VERBS = """
--version
--help
send --help
send q --body x
send in --format xml --body '<m>1</m>'
receive q
count
accept q
peek q
info q
history q
show KEY
trace KEY
locate KEY
journal
export q --file out.jsonl --replace
why KEY
catalog
hierarchy
graph
subscriptions
load --check p.demaq g.flow o.form
load p.demaq
load g.flow
load o.form
publish S '{"n": 1}'
subscribe T --as c
connect --as c
disconnect --as c
unsubscribe --as c
queue list
source list
principal list
node list
station list
form ORDER
create ORDER No=2 --as Ann
list --as Ann
next --as Ann
mail --as Ann
get --as Ann
query ORDER No=1 --as Ann
query ORDER No=1 --scope global --as Ann
table list --as Ann
dossier list --as Ann
waiting
spheres
schedule list
type list
procedure list
counter list
outbox list
gateway list
user list
token list
grant list
doctor
verify
backup kept.db --replace
retention list
sweep
redrive r
move r --to q
purge r --yes
top --once
run --until-idle
"""


class Cost(NamedTuple):
    verb: str
    processor: float
    seconds: float
    failed: bool


def run(folder: Path, arguments: list[str]) -> tuple[float, float, int]:
    """Processor time and seconds of a command, and how it ended."""
    program = str(Path(sys.executable).with_name("postroom"))
    environment = {
        **os.environ,
        "POSTROOM_URL": "room.db",
        "POSTROOM_PASSWORD": "secret",
        "PYTHONDONTWRITEBYTECODE": "",
    }
    out = os.open(folder / "said.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    actions = [(os.POSIX_SPAWN_DUP2, out, 1), (os.POSIX_SPAWN_DUP2, out, 2)]
    began = perf_counter()
    process = os.posix_spawn(program, [program, *arguments], environment, file_actions=actions)
    _, status, used = os.wait4(process, 0)
    os.close(out)
    return used.ru_utime + used.ru_stime, perf_counter() - began, os.waitstatus_to_exitcode(status)


def measured(folder: Path, runs: int) -> list[Cost]:
    for name, text in (("p.demaq", RULES), ("g.flow", FLOW), ("o.form", FORM)):
        (folder / name).write_text(text)
    os.chdir(folder)
    for line in SETUP.strip().splitlines():
        if run(folder, shlex.split(line))[2] != 0:
            sys.exit(f"{line}: {(folder / 'said.txt').read_text()}")
    with postroom.open(folder / "room.db") as room:
        key = str(next(iter(room.queues.info("q"))).key)
    found = []
    for line in VERBS.strip().splitlines():
        taken = [run(folder, shlex.split(line.replace("KEY", key))) for _ in range(runs)]
        failed = taken[0][2] != 0
        if failed:
            print(f"{line}: {(folder / 'said.txt').read_text()}", file=sys.stderr)
        found.append(Cost(line, min(used for used, _, _ in taken), min(seconds for _, seconds, _ in taken), failed))
    return found


def main(runs: int) -> None:
    with tempfile.TemporaryDirectory(prefix="postroom-verbs-") as folder:
        for cost in sorted(measured(Path(folder), runs), key=lambda cost: -cost.processor):
            print(f"{cost.processor:6.3f} s of processor time {cost.seconds:6.3f} s  {cost.verb}{' !' * cost.failed}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
