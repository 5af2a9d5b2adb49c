"""A command answers in well under a second because it loads only what it needs."""

from __future__ import annotations

import ast
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import postroom
from postroom.interfaces.cli import main

#: Half of a second by themselves: a command that is run needs them, its help does not.
ROOM = {"postroom.room", "postroom.store", "postroom.engine", "postroom.rules"}
SLOW = {"pyspark", "pyarrow", "pandas", "saxonche", "lxml", "psycopg", "rich", "urllib.request", "http.client"}


def test_the_program_starts_without_what_takes_long_to_load() -> None:
    script = f"import sys, postroom.interfaces.cli.main\nprint(sorted({SLOW | ROOM} & sys.modules.keys()))"
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert told.stdout == "[]\n", "import it in the function that needs it"


def test_the_help_of_all_commands_loads_no_room() -> None:
    script = "import sys\nfrom postroom.interfaces.cli import main\nsys.argv[1:] = ['--help']\n"
    script += "try:\n    main.main()\nexcept SystemExit as end:\n    print(end.code)\n"
    script += f"print(sorted({SLOW | ROOM} & sys.modules.keys()))"
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert told.stdout.endswith("\n0\n[]\n"), "a module of commands imports it in the function that needs it"


def test_every_public_name_is_there_when_it_is_asked_for() -> None:
    script = "import postroom\nprint(all(getattr(postroom, name) for name in postroom.__all__), dir(postroom))\n"
    script += "try:\n    postroom.nothing\nexcept AttributeError as error:\n    print(error)"
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    found, error = told.stdout.splitlines()
    assert found.startswith("True")
    assert "'Postroom'" in found
    assert error == "module 'postroom' has no attribute 'nothing'"


def test_a_send_and_a_receive_load_no_other_capability(tmp_path: Path) -> None:
    script = "import sys, postroom\nwith postroom.open(sys.argv[1]) as room:\n"
    script += "    room.queues.create('q')\n    room.send('q', 'x')\n    room.receive('q')\n    room.count('q')\n"
    script += "print(sorted({name.split('.')[1] for name in sys.modules if name.startswith('postroom.')}))"
    told = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "room.db")],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    loaded = set(ast.literal_eval(told.stdout))
    assert {"queues", "store"} <= loaded
    assert not {"rules", "flows", "spheres", "stations", "gateways", "diagnosis"} & loaded


def test_a_verb_of_one_capability_loads_no_other(tmp_path: Path) -> None:
    """What a command loads is most of what it costs."""
    (tmp_path / "g.flow").write_text("domain d space S : [n: int]")
    uses = {
        "room.journal.last(), room.journal.after(0)": set(),
        "room.journal.verify()": set(),
        "room.access.grants(), room.access.tokens()": set(),
        "room.flows.add_principal('a', 'pw'), room.access.grant('a', 'look'), room.flows.remove_principal('a')": set(),
        "room.queues.create('q'), room.send('q', 'x'), room.consumers.purge('q')": set(),
        "room.gateways.all()": {"gateways"},
        "room.stations.nodes(), room.stations.add('Ann', 'pw')": {"stations"},
        "room.load(sys.argv[2])": None,
        "room.flows.graph(), room.flows.publish('S', [1]), room.flows.principals()": {"flows"},
    }
    script = "import sys, postroom\nwith postroom.open(sys.argv[1]) as room:\n    exec(sys.argv[3])\n"
    script += "print(sorted({name.split('.')[1] for name in sys.modules if name.startswith('postroom.')}))"
    for use, wanted in uses.items():
        command = [sys.executable, "-c", script, str(tmp_path / "room.db"), str(tmp_path / "g.flow"), use]
        told = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        loaded = set(ast.literal_eval(told.stdout)) & {"rules", "flows", "spheres", "stations", "gateways"}
        assert wanted is None or loaded == wanted, use


@pytest.mark.parametrize(
    ("verb", "unwanted"),
    [
        ("count", "queues.leases.leasing queues.selecting"),
        ("send q --body y", "queues.leases.leasing queues.selecting store.tables.types"),
        ("user list", "flows stations queues.verbs"),
        ("grant list", "flows stations rules queues.verbs"),
        ("journal", "queues.verbs"),
        ("spheres", "stations.forms stations.mail"),
        ("purge q --yes", "flows"),
        ("graph", "queues.verbs rules stations"),
        ("gateway list", "gateways.http gateways.smtp gateways.soap"),
    ],
)
def test_a_command_loads_nothing_but_what_it_uses(verb: str, unwanted: str, tmp_path: Path) -> None:
    """Half of what a command costs are the classes of modules that nobody uses."""
    with postroom.open(tmp_path / "room.db") as room:
        room.queues.create("q")
        room.send("q", "x")
    script = "import sys\nfrom postroom.interfaces.cli import main\nsys.argv[1:] = sys.argv[2:]\n"
    script += "try:\n    main.main()\nexcept SystemExit as end:\n    assert not end.code\nprint(list(sys.modules))"
    command = [sys.executable, "-c", script, "-", "--room", str(tmp_path / "room.db"), *verb.split()]
    told = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    loaded = set(ast.literal_eval(told.stdout.splitlines()[-1]))
    rows = {
        f"postroom.store.tables.{table}" for table in ("epochs", "sequences", "streams", "tracking", "working_sets")
    }
    refused = (
        {f"postroom.{name}" for name in unwanted.split()} | SLOW | rows | {"asyncio", "ssl", "argon2", "cloudpickle"}
    )
    assert refused & loaded == set()


def test_a_command_hardly_looks_for_garbage(tmp_path: Path) -> None:
    """It keeps nearly all that it makes until it ends."""
    postroom.open(tmp_path / "room.db").close()
    script = "import gc, sys\nfrom postroom.interfaces.cli import main\nsys.argv[1:] = sys.argv[2:]\n"
    script += "began = sum(each['collections'] for each in gc.get_stats())\n"
    script += "try:\n    main.main()\nexcept SystemExit as end:\n    assert not end.code\n"
    script += "print(sum(each['collections'] for each in gc.get_stats()) - began)"
    command = [sys.executable, "-c", script, "-", "--room", str(tmp_path / "room.db"), "count"]
    told = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert int(told.stdout.splitlines()[-1]) < 8


def test_looking_at_a_room_with_rules_compiles_none_of_them(tmp_path: Path) -> None:
    program = "create queue a kind basic mode persistent create queue b kind basic mode persistent\n"
    (tmp_path / "p.demaq").write_text(program + "create rule r for a if (/x) then do enqueue <y/> into b")
    with postroom.open(str(tmp_path / "room.db")) as room:
        room.load(tmp_path / "p.demaq")
        room.send("a", "<x/>", format="xml")
    script = "import sys, postroom\nwith postroom.open(sys.argv[1]) as room:\n"
    script += "    lag = room.operations.overview().lags['rules']\n"
    script += "    print(lag, room.engine.sweepable()['messages'], room.engine.sweep())\n"
    script += "print([name for name in sys.modules if name.startswith(('postroom.', 'concurrent.'))])"
    command = [sys.executable, "-c", script, str(tmp_path / "room.db")]
    told = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.splitlines()
    assert told[0] == "1 0 0"
    loaded = ast.literal_eval(told[1])
    assert "postroom.rules.programs" in loaded
    assert not [name for name in loaded if name.startswith(("postroom.rules.compilation", "postroom.rules.evaluation"))]
    beside = {
        "postroom.stations.procedures.interpreter",
        "postroom.store.proof.verification",
        "postroom.store.upkeep.backup",
    }
    beside |= {"postroom.engine.dispatch", "concurrent.futures"}
    assert not beside.intersection(loaded)


def test_a_load_needs_nothing_of_what_tries_definitions_on_history(tmp_path: Path) -> None:
    (tmp_path / "p.demaq").write_text("create queue a kind basic mode persistent")
    script = "import sys, postroom\nwith postroom.open(sys.argv[1]) as room:\n    room.load(sys.argv[2])\n"
    script += "print([name for name in sys.modules if name.endswith('tryout') or name == 'cloudpickle'])"
    command = [sys.executable, "-c", script, str(tmp_path / "room.db"), str(tmp_path / "p.demaq")]
    assert subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout == "[]\n"


@pytest.mark.parametrize(
    ("file", "others"),
    [
        ("p.demaq", ("postroom.flows.language", "postroom.stations.procedures")),
        ("g.flow", ("postroom.rules", "postroom.stations.procedures")),
        ("o.form", ("postroom.rules.compilation", "postroom.rules.evaluation", "postroom.flows.language")),
        ("t.qdl", ("postroom.rules.compilation", "postroom.flows.language", "postroom.stations.procedures")),
    ],
)
def test_a_load_of_one_language_loads_no_other(file: str, others: tuple[str, ...], tmp_path: Path) -> None:
    """Also where the room has definitions in all of them."""
    texts = {
        "p.demaq": "create queue a kind basic mode persistent create queue b kind basic mode persistent\n"
        "create rule r for a if (/x) then do enqueue <y/> into b",
        "g.flow": "domain d space S : [n: int]",
        "o.form": "type ORDER\n| No: ____ |\nfield No string required\n",
        "t.qdl": "01 INPUT-QUEUE (t)\n99\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    with postroom.open(tmp_path / "room.db") as room:
        room.load(*(tmp_path / name for name in texts))
    script = "import sys, postroom\nwith postroom.open(sys.argv[1]) as room:\n    room.load(sys.argv[2])\n"
    script += "print([name for name in sys.modules if name.startswith('postroom.')])"
    command = [sys.executable, "-c", script, str(tmp_path / "room.db"), str(tmp_path / file)]
    told = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert [name for name in ast.literal_eval(told.stdout) if name.startswith(others)] == []


def test_the_version_is_told_without_any_command() -> None:
    script = "import sys\nfrom postroom.interfaces.cli import main\nsys.argv[1:] = ['--version']\n"
    script += "try:\n    main.main()\nexcept SystemExit as end:\n    print(end.code)\n"
    script += "print([name for name in sys.modules if name.removeprefix('postroom.interfaces.cli.') in main.COMMANDS])"
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert told.stdout.startswith("postroom ")
    assert told.stdout.endswith("\n0\n[]\n")


@pytest.mark.parametrize(
    ("words", "commands"),
    [
        ("send q --body x", ["send"]),
        ("--room r.db --json send q", ["send"]),
        ("--room=r.db queue create q", ["queue"]),
        ("why-not ann send q", ["why-not"]),
        ("--token t list", ["list"]),
        ("", None),
        ("--help", None),
        ("sned q", None),
        ("--room send", None),
    ],
)
def test_only_the_command_that_is_called_is_prepared(words: str, commands: list[str] | None) -> None:
    needed = main.program(main._called(words.split()))
    prepared = [command.name for command in needed.registered_commands]
    prepared += [group.name for group in needed.registered_groups]
    assert prepared == commands if commands else len(prepared) > 80


def test_the_help_of_the_program_is_the_same_with_commands_that_are_only_listed() -> None:
    shown = [CliRunner().invoke(app, ["--help"], prog_name="postroom") for app in (main.program(), main.listing())]
    assert [each.exit_code for each in shown] == [0, 0]
    assert shown[0].output == shown[1].output
    refused = [CliRunner().invoke(app, ["sned", "q"]) for app in (main.program(), main.listing())]
    assert "Did you mean 'send'" in refused[0].output
    assert refused[0].output == refused[1].output


@pytest.mark.parametrize(
    ("words", "listed"),
    [
        ("", True),
        ("--help", True),
        ("sned q", True),
        ("--room r.db -h", True),
        ("help send", False),
        ("send -h", False),
    ],
)
def test_commands_are_only_listed_if_no_word_names_one(words: str, listed: bool) -> None:
    functions = [command.callback for command in main._for(words.split()).registered_commands]
    assert [each is main._listed for each in functions] == [listed] * len(functions)
    assert len(functions) > 50 if listed else functions


def test_ctrl_c_while_modules_load_ends_a_command_without_a_traceback() -> None:
    command = [sys.executable, "-X", "importtime", "-m", "postroom", "count"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as program:
        assert program.stderr is not None
        told = next(line for line in program.stderr if "typer._click" in line)
        program.send_signal(signal.SIGINT)
        told += program.stderr.read()
    assert program.returncode == -signal.SIGINT
    assert "Traceback" not in told
