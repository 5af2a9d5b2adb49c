"""Measure what each verb of the command line costs: ``python bench/verbs.py [RUNS]``.

A verb starts a process of its own; what is told is its processor time, the least of some runs, and its seconds beside.
Verbs that start Spark or Java, and those that run until they are stopped, are not here.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
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
TYPE = """type MEMO
| KEY: ________ Text: _________ |
field KEY  key    automatic
field Text string free
"""
RULES = """create collection prices
create queue in kind basic mode persistent
create queue out kind basic mode persistent
create queue print kind outgoingGateway mode persistent interface command port printer
create property kind as xs:string queue in value //@kind
create slicing kinds on kind
create rule pass for in if (/m) then do enqueue <r>{string(/m)}</r> into out
"""
FLOW = """domain d
space S : [n: int]
space T : [n: int]
arc a : S -> T transform [n: x] => [n: x + 1]
"""
TREE = """01 INPUT-QUEUE (CLAIMS)
   02 SUB-QUEUE-1 (NORTH)
   02 SUB-QUEUE-1 (SOUTH)
99
"""
COBOL = """IDENTIFICATION DIVISION.
PROGRAM-ID. HELLO.
DATA DIVISION.
COMMUNICATION SECTION.
CD ANSWERS FOR OUTPUT
   DESTINATION COUNT IS ANSWER-COUNT
   TEXT LENGTH IS ANSWER-LENGTH
   STATUS KEY IS ANSWER-STATUS
   SYMBOLIC DESTINATION IS ANSWER-NAME.
PROCEDURE DIVISION.
MAIN-PARAGRAPH.
   STOP RUN.
"""
FILES = {
    "p.demaq": RULES,
    "g.flow": FLOW,
    "o.form": FORM,
    "m.form": TYPE,
    "t.qdl": TREE,
    "hello.cob": COBOL,
    "prices.xml": "<prices><price>1</price></prices>",
    "lines.jsonl": '{"body": "a"}\n{"body": "b"}\n',
}
#: What makes the room, one after another; then a sphere is begun, which only a program can do.
SETUP = """
queue create q
queue create r
queue create s
queue create orders
node add north north.db
station add Ann
station add Bob
station add Cid --node north
user add ann
grant add ann look q
token create ann laptop
gateway add printer command command=true
source create TERM
schedule add morning '0 7 * * 1-5' q --body x
load p.demaq
load g.flow
load o.form
load m.form
load t.qdl
collection load prices prices.xml
subscribe T --as d
send q --body x
send q --body y
send s --body z
send in --format xml --body '<m kind="k">1</m>'
create ORDER No=1 --as Ann
dossier add travel LAST --as Ann
query ORDER No=1 --into found --as Ann
create ORDER No=3 To=Bob --as Ann
ship LAST Bob --as Ann
publish S '{"n": 1}'
"""
#: What is measured, one after another, in a room that is left as good as it was. LAST is the key, lease or token that
#: was told last.
VERBS = """
--version
--help
send --help
queue --help
send q --body x
receive q
send in --format xml --body '<m>1</m>'
send q --file lines.jsonl
receive q --lease 60
extend LAST 60
release LAST
receive s --lease 60
done LAST
send s --body z
receive s --lease 60
fail LAST why --final
redrive s
leases
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
slice kinds k
catalog
hierarchy
explain pass --no-plan
explain a --no-plan
explain pay
graph
subscriptions
load --check p.demaq g.flow o.form
load p.demaq
load g.flow
load o.form
load t.qdl
collection load prices prices.xml
publish S '{"n": 1}'
subscribe T --as c
connect --as c
disconnect --as c
unsubscribe --as c
queue create z
queue remove z
queue list
queue mode keep q
queue policy q
queue policy q --attempts 5
queue password q
disable q
enable q
source list
source create Z
source remove Z
source disable TERM
principal list
user list
user add bert
user sign-out bert
user remove bert
token list
token create ann phone
token revoke LAST
grant list
grant add ann send q
grant remove ann send q
why-not ann look q
gateway list
gateway add lp command command=true
gateway test lp
gateway remove lp
node list
node add south south.db
node remove south
station list
station add Zoe
station remove Zoe
login Ann
list
logout
form ORDER
create MEMO Text=a --as Ann
modify LAST Text=b --as Ann
ship LAST Cid --as Ann
take-back LAST --as Ann
create ORDER No=5 --as Ann
copy LAST --as Ann
list --as Ann
next --as Ann
mail --as Ann
get --as Ann
query ORDER No=1 --as Ann
query ORDER No=1 --scope global --as Ann
table list --as Ann
table show found --as Ann
query ORDER No=1 --into other --as Ann
table drop other --as Ann
dossier list --as Ann
dossier show travel --as Ann
waiting
spheres
sphere show kept
sphere acknowledge KEY
compensate --once
schedule list
schedule add noon '0 12 * * 1-5' q --body x
schedule remove noon
type list
type export ORDER
procedure list
procedure disable pay
procedure enable pay
counter list
counter show front
outbox list
cobol translate hello.cob -o hello.out.cob
doctor
verify
mend
backup kept.db --replace
archive
retention list
retention set receipts 7d
sweep
sweep --dry-run
redrive r
move r --to q
purge r --yes
top --once
try p.demaq
run --until-idle
"""
#: What identifies what a verb has made, in what it tells.
_MADE = re.compile(r"(?<=done )\d+|\d{5}\.\d{5}|(?<=postroom_)[0-9a-f]{12}")


class Run(NamedTuple):
    """One command: its processor time and seconds, how it ended and what it told."""

    processor: float
    seconds: float
    code: int
    told: str


def run(arguments: list[str]) -> Run:
    program = str(Path(sys.executable).with_name("postroom"))
    environment = {
        **os.environ,
        "POSTROOM_URL": "room.db",
        "POSTROOM_PASSWORD": "secret",
        "PYTHONDONTWRITEBYTECODE": "",
    }
    said = Path("said.txt")
    out = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    actions = [(os.POSIX_SPAWN_DUP2, out, 1), (os.POSIX_SPAWN_DUP2, out, 2)]
    began = perf_counter()
    process = os.posix_spawn(program, [program, *arguments], environment, file_actions=actions)
    _, status, used = os.wait4(process, 0)
    seconds = perf_counter() - began
    os.close(out)
    return Run(used.ru_utime + used.ru_stime, seconds, os.waitstatus_to_exitcode(status), said.read_text())


def run_each(lines: str) -> Iterator[tuple[str, Run]]:
    """Run a verb of each line, and tell what it took."""
    made = ""
    for verb in lines.strip().splitlines():
        taken = run(shlex.split(verb.replace("LAST", made)))
        found = _MADE.search(taken.told)
        made = found[0] if found else made
        yield verb, taken


def prepare() -> str:
    """Make the room in this folder; the key of a message of a sphere."""
    for name, text in FILES.items():
        Path(name).write_text(text)
    for verb, taken in run_each(SETUP):
        if taken.code != 0:
            sys.exit(f"{verb}: {taken.told}")
    with postroom.open("room.db") as room:
        sphere = room.sphere("kept")
        return str(sphere.send("out", "<x/>", compensation="<y/>").key)


def main(runs: int) -> None:
    with tempfile.TemporaryDirectory(prefix="postroom-verbs-") as folder:
        os.chdir(folder)
        verbs = VERBS.replace("KEY", prepare())
        found: dict[str, list[Run]] = defaultdict(list)
        for _ in range(runs):
            for verb, taken in run_each(verbs):
                found[verb].append(taken)
    for verb, taken_each in sorted(found.items(), key=lambda each: -min(taken.processor for taken in each[1])):
        used, seconds = (min(each) for each in zip(*(taken[:2] for taken in taken_each), strict=True))
        failed = [f"  ! {taken.told}" for taken in taken_each if taken.code]
        print(f"{used:6.3f} s of processor time {seconds:6.3f} s  {verb}{''.join(failed[:1])}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
