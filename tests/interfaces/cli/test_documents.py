"""Every command with ``--json`` prints documents of the one vocabulary: ``run`` compares each with the reference."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
import typer.main
from tests.interfaces import shapes
from tests.interfaces.conftest import Run

import postroom
from postroom.interfaces.cli.main import program

FORM = """\
type NOTE
| To: ________ Text: ________ |
field To string required
field Text string free
procedure pair at Desk
  precondition a : NOTE
    Text: <> ""
counter front at Desk takes NOTE from notes
"""
FLOW = "domain d space S : [n: int] space T : [n: int] arc a : S -> T select [n: > 1]"
RULES = """create queue in kind basic mode persistent create queue out kind basic mode persistent
create queue print kind outgoingGateway mode persistent interface command port printer
create property p as xs:string queue in value string(/x) create slicing s on p create collection goods
create rule r for s if (/x) then do enqueue <y/> into out"""
TREE = '01 INPUT-QUEUE (TOP) PASSWORD IS "secret"\n   02 SUB-QUEUE-1 (SUB) COMMAND LINE IS "false"\n99\n'
FILES = {
    "all.form": FORM,
    "all.flow": FLOW,
    "all.demaq": RULES,
    "all.qdl": TREE,
    "proposed.demaq": "create rule n for in if (/x) then do enqueue <z/> into out",
    "good.xml": "<good/>",
    "password.txt": "a long password",
    "note.json": '{"title": "MEMO", "type": "object", "properties": {"To": {"type": "string"}}}',
    "NOTE.cbl": "".join(
        f"{' ' * 7}{line}.\n"
        for line in ("IDENTIFICATION DIVISION", "PROGRAM-ID. NOTE", "PROCEDURE DIVISION", "STOP RUN")
    ),
}
#: What prints no document of its own, or runs until it is ended.
OTHERS = {
    "run": "starts an engine; tests/interfaces/cli/commands/test_engine.py",
    "lsp": "speaks the protocol of editors",
    "serve": "runs; tests/interfaces/cli/commands/test_serving.py",
    "gateway listen": "runs; tests/interfaces/cli/commands/test_gateways.py",
    "work": "runs a worker of a program; tests/interfaces/cli/commands/test_working.py",
    "stream": "needs Spark; tests/interfaces/cli/commands/test_streams.py",
    "sql": "needs Spark; tests/interfaces/cli/commands/test_queries.py",
    "prepare": "needs Spark; tests/interfaces/cli/commands/test_preparing.py",
    "archive": "needs Spark; tests/interfaces/cli/commands/test_upkeep.py",
    "sphere settle": "needs another database; below",
    "cobol session": "speaks the protocol of COBOL programs",
    "cobol build": "needs a compiler; tests/interfaces/cli/commands/test_cobol.py",
    "cobol run": "needs a compiler; tests/interfaces/cli/commands/test_cobol.py",
    "cobol library": "needs a compiler; tests/interfaces/cli/commands/test_cobol.py",
}
#: Of these, what prints no document at all.
SILENT = ["lsp", "gateway listen", "cobol session", "cobol run"]
BEGIN = """
gateway add printer command command=false
gateway add other command command=true
gateway list
gateway test other
gateway remove other
principal add boss
principal list
principal remove boss
station add Desk
station add Lamp
station add Spare
station remove Spare
station list
queue create notes
load all.form all.flow all.demaq
load all.qdl
load all.form --check
type list
type export NOTE
catalog
hierarchy
graph
form NOTE
login Desk
logout
queue create q
queue list
queue policy q --attempts 1 --dead-letters dead
queue mode keep q
queue password q
queue create spare
queue remove spare
disable TOP
enable TOP
source create TERM --with-password
source list
source disable TERM
source enable TERM
source remove TERM
send q --body one
send q --body two
send q --body three
send in --format xml --body <x>k</x>
count
accept q
peek q
info q
history q
slice s k
explain r --no-plan
try proposed.demaq
export q --file q.jsonl
journal
top
publish S [2]
subscribe S --as desk
subscriptions
disconnect --as desk
connect --as desk
unsubscribe --as desk
receive q
schedule add s "0 7 * * *" q --body x
schedule list
schedule remove s
collection load goods good.xml
outbox list
spheres
sphere watch ABORTED out --stop
compensate --once
purge out --yes
waiting
counter list
counter show front
counter remove front
procedure list
procedure disable pair
procedure enable pair
procedure remove pair
node add far far.db
node list
node secure
node move far far.db
node remove far
user add ann --password-file password.txt
user list
grant add ann send q
grant list
why-not ann send q
token create ann mine
token list
grant remove ann send q
user sign-out ann
retention list
retention set spheres 30d
sweep
doctor
verify
mend
backup copy.db
restore copy.db --room restored.db
cobol translate NOTE.cbl
type import note.json
"""

AT_A_STATION = """
show KEY
locate KEY
trace KEY
why KEY
modify KEY Text=y --as Desk
copy KEY --as Desk
list --as Desk
next --as Desk
query NOTE To=x --as Desk
query NOTE To=x --as Desk --into found
table list --as Desk
table show found --as Desk
table drop found --as Desk
dossier add d KEY --as Desk
dossier list --as Desk
dossier show d --as Desk
dossier remove d KEY --as Desk
ship KEY Lamp --as Desk
take-back KEY --as Desk
ship KEY Lamp --as Desk
mail --as Lamp
get --as Lamp
"""


def commands(group: Any, path: str = "") -> set[str]:
    if not hasattr(group, "commands"):
        return {path.strip()}
    return set().union(*(commands(command, f"{path} {name}") for name, command in group.commands.items()))


def test_every_command_prints_documents_of_the_vocabulary(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POSTROOM_PASSWORD", "secret")
    every = commands(typer.main.get_command(program()))
    seen: set[str] = set()
    for name, text in FILES.items():
        Path(name).write_text(text)

    def told(line: str) -> Any:
        words = shlex.split(line)
        name = " ".join(words[:2]) if " ".join(words[:2]) in every else words[0]
        ran = run(*words, "--json")
        assert "error" not in ran.json, line
        seen.add(name)
        return ran.json

    for line in BEGIN.strip().splitlines():
        told(line)
    leases = [told("receive q --lease 60")["message"]["lease"] for _ in range(2)]
    assert [each["lease"] for each in told("leases")["leased"]] == leases
    told(f"extend {leases[0]} 90")
    told(f"release {leases[0]}")
    told(f"fail {leases[1]} broken --final")
    told("move dead --to q --limit 1 --dry-run")
    told("redrive dead --dry-run")
    told(f"done {told('receive q --lease 60')['message']['lease']}")
    key = told("create NOTE To=x --as Desk")["key"]
    for line in AT_A_STATION.strip().splitlines():
        told(line.replace("KEY", key))
    (token,) = told("token list")["tokens"]
    told(f"token revoke {token['id']}")
    told("user remove ann")
    with postroom.open("postroom.db") as room, room.sphere() as sphere:
        sent = sphere.send("q", "x").key
        told(f"sphere show {sphere.id}")
        told(f"sphere acknowledge {sent}")
    with postroom.open("postroom.db") as room:
        sphere = room.sphere()
        told(f"sphere abort {sphere.id}")
    told("send TOP SUB --body x")
    (effect,) = told("outbox list")["effects"]
    told(f"outbox retry {effect['effect']}")
    told(f"outbox drop {effect['effect']}")
    assert every - seen == set(OTHERS)
    assert every - set(shapes.COMMANDS) == set(SILENT)


def test_settling_prints_what_became_of_each_sphere(run: Run, postgres_url: str) -> None:
    assert run("queue", "create", "q", "--json").code == 0
    assert run("sphere", "settle", postgres_url, "--json").json == {"status": "00", "settled": {}}
