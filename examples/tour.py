"""The tour: every capability in a few commands, run for real in a room that is thrown away.

make demo                 the whole tour; most chapters start Spark, which takes half a minute
python examples/tour.py queues
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

EXAMPLES = Path(__file__).parent


@dataclass(frozen=True)
class Step:
    """What is shown: why, what is typed, and how it must end."""

    why: str
    typed: str
    code: int = 0


WORKER = """import os, signal, postroom
workers = postroom.Workers()
@workers.worker("INP_0003")
def handle(message: postroom.LeasedMessage) -> None:
    if message.attempts == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    print(f"{message.body}: attempt {message.attempts}")
"""
QUEUES = (
    Step("A tree of queues is described in a file; this one is Figure 2-2 of the 1976 text.", "head -5 tree.qdl"),
    Step("Load it: eight input queues, two output queues.", "postroom load tree.qdl"),
    Step("Send to a queue by its path from the top …", "postroom send MASTER-QUE SUBQ-3 QUE6 --body 'order 17'"),
    Step("… or by its physical name. Lines are segments.", "printf 'first\\nsecond\\n' | postroom send INP_0007"),
    Step("How many messages wait below a level?", "postroom count MASTER-QUE SUBQ-3"),
    Step("Receive from a level: its queues are looked at left to right.", "postroom receive MASTER-QUE SUBQ-3"),
    Step("Everything that happened to that message:", "postroom trace 00001.00001"),
    Step(
        "A worker leases a message, and is killed half-way …", "postroom send INP_0003 --body 'order 19'; sh worker.sh"
    ),
    Step("Another gets the message at once, as its second attempt.", "postroom work worker:workers --until-idle"),
    Step("A path starts at the top; a wrong name is answered with the right one.", "postroom receive QUE8", 1),
    Step("Read a message line by line …", "postroom receive MASTER-QUE SUBQ-3 QUE8 --segment"),
    Step("… and the queue is yours until its end. Nothing else gets in:", "postroom send INP_0007 --body late", 1),
    Step("The last line frees the queue.", "postroom receive MASTER-QUE SUBQ-3 QUE8 --segment"),
    Step("Put everything on hold with the password of the top level.", "echo MASTER | postroom disable MASTER-QUE"),
    Step("A held queue neither accepts nor releases.", "postroom send INP_0001 --body 'order 18'", 1),
    Step("Take it off hold.", "echo MASTER | postroom enable MASTER-QUE"),
    Step("QUE1A has a command line: it runs when the queue becomes non-empty.", "postroom send INP_0000 --body go"),
    Step("The engine runs it, keeps what it printed, and would try again after a crash.", "postroom run --until-idle"),
    Step("And all of it is in the journal.", "postroom journal --last 6"),
)


def queues(shell: Callable[[Sequence[Step]], None], folder: Path) -> None:
    """Chapter 1: describe, send, receive, hold, run."""
    text = (EXAMPLES / "queues" / "figure-2-2.qdl").read_text()
    (folder / "tree.qdl").write_text(text.replace("ear subq-1", "echo go and look"))
    (folder / "worker.py").write_text(WORKER)
    (folder / "worker.sh").write_text("postroom work worker:workers --until-idle || echo killed\n")
    shell(QUEUES)


REQUEST = "<requestID>{}</requestID><customerID>{}</customerID><items><item name='{}' quantity='{}'/></items>"
ASK = f'postroom send crm --format xml --body "<offerRequest>{REQUEST}</offerRequest>"'
RULES = (
    Step("A rule says what follows from a message: XQuery that returns actions.", "grep -A2 cleanupR trade.demaq"),
    Step(
        "Gateways lead to partners. Here these fetch their messages.",
        "for name in supplier customer postalService; do postroom gateway add $name fetched; done",
    ),
    Step("A file of rules is a program. This one is the procurement of the 2007 paper.", "postroom load trade.demaq"),
    Step("Master data is a collection.", "postroom collection load crm pricelist.xml"),
    Step("A customer asks for an offer …", ASK.format("r1", "c1", "acetone", 10)),
    Step("… another for what may not be exported …", ASK.format("r2", "c2", "phosgene", 1)),
    Step("… and one for a quantity that is no number.", ASK.format("r3", "c3", "xylene", "many")),
    Step("Messages with the same request number are a slice.", "postroom slice requestMsgs r1"),
    Step("A queue can have a schema.", "postroom send invoices --format xml --body '<invoice/>'", 1),
    Step("The engine evaluates rules on Spark. Starting it takes half a minute.", "postroom run --until-idle --json"),
    Step("Three checks ran in parallel and were joined: an offer, a refusal.", "postroom history customer"),
    Step("The third request broke a rule. An error is a message, too.", "postroom history crmErrors"),
    Step("Its slice still waits for the answer that did not come …", "postroom slice requestMsgs r3"),
    Step("… so it is kept.", "postroom why 00001.00003"),
    Step("The first request is done with.", "postroom why 00001.00001"),
    Step("Messages in no slice are deleted; the journal stays.", "postroom sweep; postroom trace 00001.00001"),
    Step("How is a rule executed?", "postroom explain joinOrder --no-plan | head -6"),
    Step("A new rule, tried on the messages that are still there. Nothing is changed.", "postroom try new.demaq"),
    Step(
        "A wrong one is refused with its place.",
        "sed s/customer/custommer/ new.demaq > bad.demaq; postroom load bad.demaq",
        1,
    ),
)
NEW = """create rule askAgain for crmErrors
if (/error/code = "FORG0001") then
  do enqueue <question>{//requestID}How many did you mean?</question> into customer
"""


def rules(shell: Callable[[Sequence[Step]], None], folder: Path) -> None:
    """Chapter 2: load, send, run, look, try."""
    for name in ("procurement.demaq", "invoice.xsd", "pricelist.xml"):
        (folder / name.replace("procurement", "trade")).write_text((EXAMPLES / "procurement" / name).read_text())
    (folder / "new.demaq").write_text(NEW)
    shell(RULES)


REGISTER = "POSTROOM_PASSWORD=secret postroom principal add operator"
OPERATOR = "POSTROOM_PASSWORD=secret postroom publish meta:trading {} --as operator"
FLOWS = (
    Step("A graph says where events go: spaces have types, arcs select, transform, merge.", "grep ^arc trading.flow"),
    Step("Load it; a table comes along.", "postroom load trading.flow"),
    Step("This is the graph as a Mermaid flowchart.", "postroom graph --mermaid trading.mmd; head -n 8 trading.mmd"),
    Step("Publish events …", "postroom publish NYSE '[\"IBM\", 80, 1000]'"),
    Step("… or lines of them, as JSON, too.", "postroom publish NASDAQ --file trades.txt"),
    Step("What does not fit the space is refused.", 'postroom publish NYSE \'["IBM", "eighty", 1]\'', 1),
    Step(
        "Subscribe, by what events say; this one keeps what comes while its client is away.",
        "postroom subscribe All '[price: p between 10 and 100]' --as desk --durable",
    ),
    Step("The desk got nothing of before. It leaves …", "postroom disconnect --as desk --broker north"),
    Step("… and misses this one.", "postroom publish NYSE '[\"SUN\", 50, 10]'"),
    Step("It is back, elsewhere.", "postroom connect --as desk --broker south"),
    Step("Events flow on Spark.", "postroom run --until-idle --json"),
    Step("What was big?", "postroom peek Big"),
    Step("And what did the desk get?", "postroom receive desk"),
    Step("Every change of the graph is an event, too.", "postroom peek meta:trading | tail -3"),
    Step("And an event changes the graph: the operator has a password.", f"{REGISTER}; postroom principal list"),
    Step("It disables an arc.", OPERATOR.format("'DisableArc: [\"big\"]'")),
    Step("Nobody else may.", "postroom publish meta:trading 'DeleteArc: [\"big\"]'", 1),
    Step("But everyone may ask.", "postroom publish meta:trading 'RequestDeleteArc: [1, \"big\"]'"),
    Step("The graph, as it is now:", "postroom graph"),
    Step("How is an arc executed?", "postroom explain capital --no-plan"),
)
TRADES = """{"issue": "HP", "price": 20, "volume": 300}
["APL", 90, 10]
"""


def flows(shell: Callable[[Sequence[Step]], None], folder: Path) -> None:
    """Chapter 3: load, draw, publish, subscribe, reflect."""
    for name in ("trading.flow", "brokers.csv"):
        (folder / name).write_text((EXAMPLES / "trading" / name).read_text())
    (folder / "trades.txt").write_text(TRADES)
    shell(FLOWS)


TYPE = "'MEETING ANNOUNCEMENT'"
STATIONS = (
    Step("A message type has a text layout: this is Figure 2 of the 1982 text.", "postroom load meeting.form"),
    Step("Its form, empty:", f"postroom form {TYPE}"),
    Step("Stations are on nodes; each node has a store of its own.", "postroom node add north north.db"),
    Step("Another one.", "postroom node add south south.db"),
    Step(
        "Four people have desks, with passwords.",
        "export POSTROOM_PASSWORD=secret; for s in Dennis Fausto; do postroom station add $s --node north; done; "
        "postroom station add Simon --node south; postroom station add Oscar",
    ),
    Step("Dennis logs in once …", "postroom login Dennis"),
    Step("… and fills in the form: Figure 3.", f"postroom create {TYPE} < figure-3.txt"),
    Step("The system has written the key, the date and who it is from.", "postroom show 00002.00001"),
    Step("A required field is fixed.", "postroom modify 00002.00001 To=Oscar", 1),
    Step("Ship it: it leaves Dennis' database and waits in a mailbox.", "postroom ship 00002.00001 Simon"),
    Step("Its sender can no longer change it.", "postroom modify 00002.00001 Response=no", 1),
    Step("Simon gets his mail, from another store, and answers.", "postroom get --as Simon"),
    Step("He may write where it is free.", "postroom modify 00002.00001 'Response=I shall come' --as Simon | tail -2"),
    Step("Where has it been?", "postroom locate 00002.00001; postroom trace 00002.00001 | cut -c30-110"),
    Step(
        "More messages, by JSON.",
        f"""echo '[{{"To": "Dennis", "Subject": "office automation"}}, {{"To": "Oscar", "Subject": "rooms"}}]' | """
        f"postroom create {TYPE} --as Fausto",
    ),
    Step("A query is a form with conditions: Figure 4.", "cat figure-4.txt"),
    Step("At Fausto's own desk the store answers.", f"postroom query {TYPE} --as Fausto < figure-4.txt"),
    Step("One of them goes to Oscar, and stays in his mailbox.", "postroom ship 00002.00003 Oscar --as Fausto"),
    Step(
        "In the whole network Spark asks every node at once.",
        f"postroom query {TYPE} 'Subject=*o*' --scope global --into found",
    ),
    Step(
        "What was found can be asked in SQL.",
        "postroom sql 'SELECT place, count(*) AS messages FROM found GROUP BY place ORDER BY place'",
    ),
    Step("And in nothing but queries.", "postroom sql 'DROP TABLE found'", 1),
    Step("A node goes away …", "mv south.db away.db"),
    Step("… and a query over it says so.", f"postroom query {TYPE} --scope global", 1),
    Step(
        "Mail to its stations waits for it.",
        f"postroom create {TYPE} To=Simon Subject=late && postroom ship 00002.00004 Simon && "
        "mv away.db south.db && postroom get --as Simon",
    ),
)


def stations(shell: Callable[[Sequence[Step]], None], folder: Path) -> None:
    """Chapter 4: forms, nodes, mail, queries by example."""
    for file in (EXAMPLES / "office").iterdir():
        (folder / file.name).write_text(file.read_text())
    shell(STATIONS)


SHIPPED = "key=$(postroom create {} --as {}) && postroom ship $key {} --as {}"
PROCEDURES = (
    Step("John is on holiday: Figures 5 to 8 of the 1982 text.", "tail -7 holiday.form"),
    Step(
        "At a purchase desk three messages belong together.", "sed -n '/^procedure approve/,/Amount:/p' purchase.form"
    ),
    Step(
        "Five desks.",
        "export POSTROOM_PASSWORD=secret; "
        "for s in John Mary Oscar purchasing accounts; do postroom station add $s; done",
    ),
    Step("Load them with the types that they handle.", "postroom load meeting.form holiday.form purchase.form"),
    Step("Mary announces a meeting to John.", SHIPPED.format(f"{TYPE} To=John Subject=rooms", "Mary", "John", "Mary")),
    Step(
        "Paper is ordered …",
        "postroom create ORDER 'Order No=17' Supplier=Oscar Item=paper Amount=12.50 --as purchasing",
    ),
    Step("… and delivered.", SHIPPED.format("'DELIVERY NOTE' 'Order No=17'", "Oscar", "purchasing", "Oscar")),
    Step("The engine offers them to the procedures. Nobody is logged in.", "postroom run --until-idle --json"),
    Step("Mary has an answer …", "postroom get --as Mary && postroom show 00001.00001"),
    Step("… and John a copy for later.", "postroom dossier show missed --as John"),
    Step("The order waits for its invoice.", "postroom waiting approve"),
    Step("How is it looked for, whichever comes last?", "postroom explain approve | grep -A5 joins"),
    Step(
        "The invoice is too high …", SHIPPED.format("INVOICE 'Order No=17' Amount=13", "Oscar", "purchasing", "Oscar")
    ),
    Step("… the next is right.", SHIPPED.format("INVOICE 'Order No=17' Amount=12.5", "Oscar", "purchasing", "Oscar")),
    Step("Again.", "postroom run --until-idle --json"),
    Step("One has come back, with the reason.", "postroom get --as Oscar && postroom show 00001.00005"),
    Step("The other is approved and went on, with the order and the note.", "postroom mail --as accounts"),
    Step("Nothing waits.", "postroom waiting"),
    Step("Where has the order been?", "postroom trace 00001.00002 | cut -c30-120"),
    Step("John is back.", "postroom procedure disable holiday; postroom procedure list"),
    Step(
        "What is wrong is found when it is loaded, with its place.",
        "sed s/Response:/From:/ holiday.form > wrong.form; postroom load wrong.form",
        1,
    ),
)


def procedures(shell: Callable[[Sequence[Step]], None], folder: Path) -> None:
    """Chapter 5: what stations do by themselves."""
    for name in ("office/meeting.form", "office/holiday.form", "purchasing/purchase.form"):
        (folder / Path(name).name).write_text((EXAMPLES / name).read_text())
    shell(PROCEDURES)


AGENCY = (
    "python agency.py {0} > {0}.log & agency=$!; while sleep 0.1 && kill -0 $agency && ! grep asked {0}.log; do :; done"
)
SPHERES = (
    Step("A travel agency books with three others, or not at all: one sphere.", "sed -n '/^def/,/answers/p' agency.py"),
    Step("It books a trip, asks its customer, and waits.", AGENCY.format("trip-1")),
    Step("A sphere is a token, and its state is the queue that the token is in.", "postroom spheres"),
    Step(
        "What was sent is visible at once. Airline and hotel take theirs; the car hirer is at lunch.",
        "postroom receive flights; postroom receive hotels",
    ),
    Step("Their compensations are stored, and the letter waits for the commit.", "postroom peek COMP.Q"),
    Step("The agency is killed. It can tell nobody.", "kill -KILL $agency; wait $agency 2> killed.txt", 137),
    Step("Its sphere is still active …", "postroom spheres --state ACTIVE"),
    Step("… until the compensation engine sees that its owner has ended.", "postroom compensate --once --check 2"),
    Step("Airline and hotel get a cancellation, each once.", "postroom receive flights; postroom receive hotels"),
    Step(
        "The car hirer's message was unread. It is withdrawn, with no cancellation.",
        "postroom receive cars",
    ),
    Step("What became of each?", "postroom sphere show trip-1"),
    Step("The history of the token, from the journal …", "postroom trace 00001.00001"),
    Step("… and that of the message that was withdrawn.", "postroom trace 00001.00007"),
    Step("Another trip …", AGENCY.format("trip-2")),
    Step("… is answered in time. The agency commits.", "postroom send answers --body yes; wait $agency"),
    Step("Now the letter is sent.", "postroom receive letters"),
    Step("How they came out:", "postroom spheres"),
)


def spheres(shell: Callable[[Sequence[Step]], None], folder: Path) -> None:
    """Chapter 6: an owner is killed on stage, and what it did is undone."""
    (folder / "agency.py").write_text((EXAMPLES / "travel" / "agency.py").read_text())
    shell(SPHERES)


UNDONE = "$(postroom spheres --state ABORTED | awk 'END { print $1 }')"
PAYMENT = f"$(postroom sphere show {UNDONE} | awk '/payments/ {{ print $2 }}')"
CLAIMS = (
    Step("An insurer's claims come as lines …", "head -6 claims.txt"),
    Step("… on queues by region.", "cat claims.qdl"),
    Step(
        "A rule sees a claim as XML, and asks three departments.",
        "sed -n '/^create rule ask/,/accounts)/p' claims.demaq",
    ),
    Step("A flow graph sees it as a tuple, and finds the desk.", "grep 'arc.*claims' claims.flow"),
    Step("At a desk it is a form. Counters bring it there.", "grep ^counter claims.form"),
    Step("A procedure joins claim, report and approval.", "sed -n '/^procedure settle_north/,/Cashier/p' claims.form"),
    Step("A cashier's program pays in a sphere.", "sed -n '/^def pay/,/commit/p' cashier.py"),
    Step(
        "All of it runs; a cashier is killed on stage. The desk of the south is on a node of its own.",
        "export POSTROOM_URL=claims.db POSTROOM_PASSWORD=secret; python claims.py --room claims.db --south south.db",
    ),
    Step("Which sphere was undone?", "postroom spheres --state ABORTED"),
    Step("What had it taken and sent?", f"postroom sphere show {UNDONE}"),
    Step("The payment's whole story: what it came from, and what it led to.", f"postroom trace {PAYMENT} --causes"),
    Step("Where are the large claims?", "postroom query CLAIM 'Amount=>=5000' --scope global --as Archive"),
    Step("A letter is lines again.", "postroom receive LETTERS --segment; postroom receive LETTERS --segment"),
    Step("Nothing waits at a counter.", "postroom counter list"),
)


def claims(shell: Callable[[Sequence[Step]], None], folder: Path) -> None:
    """Chapter 7: one message through every capability."""
    for file in (EXAMPLES / "claims").iterdir():
        if file.is_file():
            (folder / file.name).write_text(file.read_text())
    shell(CLAIMS)


POSTED = (
    "postroom gateway add post smtp address=smtp://127.0.0.1:$MAIL tls=none"
    " sender=a@buyer.example to=b@supplier.example"
)
FREE = 'import socket; print(socket.create_server(("127.0.0.1", 0)).getsockname()[1])'
LISTEN = "timeout 300 postroom --room {room} gateway listen --{kind} 127.0.0.1:${port} > {kind}.log 2>&1 &"
LISTENS = "until grep -q 'taken in' {kind}.log; do sleep 0.1; done"
NEED = "\"<need id='{}'><item>bolts</item><count>{}</count></need>\""
GATEWAYS = (
    Step("A partner is an endpoint of the operator …", f"PORT=$(python -c '{FREE}') MAIL=$(python -c '{FREE}')"),
    Step(
        "… of the supplier, who takes messages in;",
        "postroom --room s.db gateway add CapacityRequestPort soap path=/trade",
    ),
    Step("a program names it, with its WSDL.", "sed -n '/^create queue/,/Reliable/p' supplier.demaq"),
    Step("What the WSDL does not know is refused here.", "postroom --room s.db load supplier.demaq"),
    Step("It listens,", LISTEN.format(room="s.db", kind="http", port="PORT") + "\n" + LISTENS.format(kind="http")),
    Step("and makes its offers.", "timeout 300 postroom --room s.db run > engine.log 2>&1 &"),
    Step(
        "The buyer knows where it is.",
        "export POSTROOM_URL=b.db; postroom gateway add CapacityRequestPort soap"
        " address=http://127.0.0.1:$PORT/trade attempts=2 backoff=0.1",
    ),
    Step("Letters go by mail.", POSTED),
    Step(
        "Load, and need something.",
        "postroom load buyer.demaq; postroom send needs --format xml --body " + NEED.format("r1", 7),
    ),
    Step(
        "Request, offer, order, invoice: each once and in order, by reliable messaging.",
        "postroom run --until-idle; postroom receive invoices",
    ),
    Step("The supplier is gone.", "kill %1 %2; wait"),
    Step("Someone has its mailbox,", "postroom --room m.db gateway add box smtp recipient=b@supplier.example"),
    Step(
        "and waits for mail.",
        "postroom --room m.db load post.demaq; " + LISTEN.format(room="m.db", kind="smtp", port="MAIL"),
    ),
    Step(
        "Another need:",
        LISTENS.format(kind="smtp") + "; postroom send needs --format xml --body " + NEED.format("r2", 9),
    ),
    Step(
        "It ends as an error message, and the rule deadLink writes a letter.",
        "postroom run --until-idle; postroom run --until-idle",
    ),
    Step("Here it is.", "postroom --room m.db receive mailbox; kill %3 2> /dev/null || kill %1"),
)


def gateways(shell: Callable[[Sequence[Step]], None], folder: Path) -> None:
    """Chapter 8: two rooms that trade, and a letter when one is dead."""
    for file in (EXAMPLES / "trade").glob("*.*"):
        (folder / file.name).write_text(file.read_text())
    (folder / "post.demaq").write_text(
        "create queue mailbox kind incomingGateway mode persistent interface smtp port box"
    )
    shell(GATEWAYS)


COBOL = (
    Step("A queue for orders, one for answers.", "postroom load orders.qdl"),
    Step("An order in segments: the customer, and a line for each article.", "head -20 teller.cob"),
    Step("Two orders come in.", "postroom send ORDERS --segment JONES --segment 'NAILS               00100'"),
    Step(
        "The second one ends a group.",
        "postroom send ORDERS --segment SMITH --segment 'SAWS                00002' --group",
    ),
    Step("Precompile, compile and link the program.", "postroom cobol build teller.cob -o teller"),
    Step("It answers all that waits, and ends.", "./teller"),
    Step("Each order has its answer.", "postroom peek COUNTER"),
    Step("What was received is final with its answer, in one commit.", "postroom journal --last 4"),
)


def cobol(shell: Callable[[Sequence[Step]], None], folder: Path) -> None:
    """Chapter 9: a program of another age, compiled and served."""
    if shutil.which("cobc") is None:
        print("\n# Skipped: GnuCOBOL (cobc) is not installed; apt-get install gnucobol has it.")
        return
    for name in ("orders.qdl", "teller.cob", "order-line.cpy"):
        (folder / name).write_text((EXAMPLES / "cobol" / name).read_text())
    shell(COBOL)


CHAPTERS: dict[str, tuple[str, Callable[[Callable[[Sequence[Step]], None], Path], None]]] = {
    "queues": ("Chapter 1. Queues", queues),
    "rules": ("Chapter 2. Rules", rules),
    "flows": ("Chapter 3. Flows", flows),
    "stations": ("Chapter 4. Stations", stations),
    "procedures": ("Chapter 5. Procedures", procedures),
    "spheres": ("Chapter 6. Spheres", spheres),
    "claims": ("Chapter 7. One room", claims),
    "gateways": ("Chapter 8. Partners", gateways),
    "cobol": ("Chapter 9. COBOL", cobol),
}


@contextmanager
def shell_in(folder: Path) -> Iterator[Callable[[Sequence[Step]], None]]:
    """One shell for a whole chapter, because to Postroom a shell is a user. It stops where a step ends unexpectedly."""
    here = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{here}:{os.environ.get('PATH', os.defpath)}"}
    environment["XDG_STATE_HOME"] = str(folder)  # where a login is kept
    environment.pop("POSTROOM_URL", None)
    shell = subprocess.Popen(
        ["/bin/sh"], cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )

    def run(steps: Sequence[Step]) -> None:
        for step in steps:
            print(f"\n  {step.why}\n  $ {step.typed}", flush=True)
            code = typed_into(shell, step.typed)
            if code != step.code:
                sys.exit(f"the tour ends here: exit code {code}, expected {step.code}")

    with shell:
        yield run


def typed_into(shell: subprocess.Popen[str], typed: str) -> int:
    """Let the shell run one command, print what comes, and answer with its exit code."""
    assert shell.stdin is not None
    assert shell.stdout is not None
    end = "-- end of step, exit code "
    shell.stdin.write(f"{{ {typed}\n}} </dev/null 2>&1; echo '{end}'$?\n")
    shell.stdin.flush()
    for line in shell.stdout:
        if line.startswith(end):
            return int(line.removeprefix(end))
        print(f"    {line}", end="", flush=True)
    return -1


def main(wanted: Sequence[str]) -> None:
    unknown = set(wanted) - set(CHAPTERS)
    if unknown:
        sys.exit(f"no chapter {', '.join(sorted(unknown))}; there are: {', '.join(CHAPTERS)}")
    for name, (title, chapter) in CHAPTERS.items():
        if not wanted or name in wanted:
            print(f"\n{title}\n{'=' * len(title)}")
            with tempfile.TemporaryDirectory(prefix="postroom-tour-") as folder, shell_in(Path(folder)) as shell:
                chapter(shell, Path(folder))
    pages = {file.stem for file in (EXAMPLES.parent / "docs" / "guide").glob("*.md")}
    guides = [name for name in CHAPTERS if name in pages] + sorted(pages - set(CHAPTERS))
    print("\nThe tour is over; its rooms are gone. Next: docs/tutorial.md, to type it yourself.")
    print(f"Then docs/guide: {', '.join(f'{name}.md' for name in guides)}")


if __name__ == "__main__":
    main(sys.argv[1:])
