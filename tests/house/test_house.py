"""House rules, each with its reason. A rule that is not a failing test is a wish."""

from __future__ import annotations

import ast
import importlib
import re
import re._parser as sre_parser  # type: ignore[import-not-found]
from collections.abc import Iterator
from pathlib import Path

import pytest

import postroom
from postroom import faults

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "postroom"
FILES = sorted(SOURCE.rglob("*.py"))
PROSE = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text())


def calls(file: Path) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree(file)) if isinstance(node, ast.Call))


def test_the_public_list_is_what_users_may_rely_on() -> None:
    assert postroom.__all__ == [
        "Accepted",
        "Answer",
        "ArcExplained",
        "ArcShown",
        "Archive",
        "ArchiveFolder",
        "BackedUp",
        "CatalogEntry",
        "CatalogVersion",
        "Checked",
        "Client",
        "Compensation",
        "Compensator",
        "CounterShown",
        "Delivery",
        "Difference",
        "Distributed",
        "Edition",
        "Effect",
        "End",
        "Endpoint",
        "EngineSeen",
        "EngineState",
        "Event",
        "EventLog",
        "Explanation",
        "FailedAttempt",
        "Field",
        "FilePart",
        "Finding",
        "Format",
        "Forms",
        "Grant",
        "GraphShown",
        "Held",
        "Hold",
        "Identity",
        "Image",
        "ImageTable",
        "InventoryItem",
        "KeptProcedure",
        "Kind",
        "LeaseShown",
        "Leased",
        "LeasedMessage",
        "Level",
        "Listing",
        "Loaded",
        "MachineHandle",
        "Membership",
        "Mended",
        "Message",
        "MessageFile",
        "MessageType",
        "NodeShown",
        "Overview",
        "Policy",
        "Portion",
        "Postroom",
        "PostroomError",
        "Presence",
        "ProcedureErrors",
        "ProcedureExplained",
        "ProcedureFailed",
        "Progress",
        "QueueCount",
        "QueueHandle",
        "QueueSeen",
        "QueueSession",
        "Received",
        "Relocated",
        "Retained",
        "Schedule",
        "SendShown",
        "Sent",
        "SentFile",
        "SentMany",
        "SentParts",
        "Severity",
        "Shipped",
        "Source",
        "SourceShown",
        "SpaceShown",
        "Sphere",
        "SphereSent",
        "SphereShown",
        "SphereTold",
        "SqlResult",
        "Station",
        "StepSeen",
        "Story",
        "StoryMessage",
        "StreamTotals",
        "Subscription",
        "Table",
        "TableShown",
        "TokenShown",
        "Totals",
        "TrialResult",
        "Tried",
        "TypeVersion",
        "Valued",
        "Verified",
        "Waiting",
        "WaitingMail",
        "WaitingSets",
        "Workers",
        "__version__",
        "errors",
        "function",
        "open",
    ]
    assert all(hasattr(postroom, name) for name in postroom.__all__)


#: Names of the public list that another class has as well, in which files, and why it may.
SHARED = {
    "Answer": (
        "interfaces/http/contract/answers.py rules/evaluation/saxon_format.py",
        "what a response of HTTP has, and what a query said",
    ),
    "Delivery": (
        "flows/evaluation/plain.py store/kernel/deliveries.py",
        "of an arc, and a row of a lease; users have that of a send to several queues",
    ),
    "Difference": ("interfaces/web/definitions/program_page.py", "what a page shows of a dry run"),
    "End": ("flows/evaluation/plans.py", "where a way of events ends"),
    "Field": ("flows/language/types.py interfaces/cobol/areas.py", "types of flows and areas of COBOL have fields"),
    "Identity": ("store/files/guard.py", "of an open file, as the system has it"),
    "Kind": (
        "interfaces/http/contract/kinds.py store/upkeep/kinds.py",
        "of a value in a request, and of what is kept for a time",
    ),
    "Membership": ("spheres/membership.py", "of a recipient; made from that of its message"),
    "Overview": ("store/files/guard.py", "of the log of a file"),
    "Policy": ("rules/language/definitions.py", "the word of Web Services"),
    "Source": (
        "engine/datasource/source.py gateways/reliable/source.py rules/compilation/plan.py",
        "the words of Spark and of WS-ReliableMessaging, and where a piece of a query was written",
    ),
    "Subscription": ("interfaces/stomp/subscriptions.py", "the word of STOMP"),
    "Table": (
        "flows/language/definitions.py store/upkeep/portable.py",
        "of flows, and of a room that is copied",
    ),
    "Tried": ("interfaces/web/definitions/program_page.py", "what a page shows of it"),
    "Verified": ("rules/evaluation/verification.py", "programs that need not be compiled again"),
}


def test_a_name_that_users_import_is_that_of_one_class() -> None:
    """Who reads ``-> Sent`` knows what it is; the others of its name are few, and each is in a field of its own."""
    found: dict[str, set[str]] = {}
    for file in FILES:
        for node in tree(file).body:
            if isinstance(node, ast.ClassDef) and node.name in postroom.__all__:
                found.setdefault(node.name, set()).add(str(file.relative_to(SOURCE)))
    homes = {name: getattr(postroom, name).__module__.split(".", 1)[1].replace(".", "/") for name in found}
    others = {name: files - {f"{homes[name]}.py", f"{homes[name]}/__init__.py"} for name, files in found.items()}
    assert {name: files for name, files in others.items() if files} == {
        name: set(files.split()) for name, (files, _) in SHARED.items()
    }


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SOURCE)))
def test_a_file_is_one_noun_and_a_function_fits_a_screen(file: Path) -> None:
    assert len(file.read_text().splitlines()) <= 800, "split it: a newcomer must find the right file by its name"
    assert not set(file.stem.split("_")) & {"utils", "util", "common", "helpers", "manager", "misc"}, "say what it is"
    assert ast.get_docstring(tree(file)), "a file says why it is there"
    for node in ast.walk(tree(file)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            length = (node.end_lineno or 0) - node.lineno + 1
            assert length <= 70, f"{node.name} has {length} lines: name its parts"


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SOURCE)))
def test_nothing_evaluates_text_or_starts_a_shell(file: Path) -> None:
    for call in calls(file):
        name = ast.unparse(call.func)
        assert name not in ("eval", "exec", "os.system", "os.popen", "__import__", "pickle.loads"), (
            f"line {call.lineno}: text from outside must stay text"
        )
        for keyword in call.keywords:
            assert keyword.arg != "shell", f"line {call.lineno}: argv only, never a shell"


@pytest.mark.parametrize("file", sorted((SOURCE / "store").rglob("*.py")), ids=lambda file: file.name)
def test_every_statement_is_a_constant_with_parameters(file: Path) -> None:
    for call in calls(file):
        if isinstance(call.func, ast.Attribute) and call.func.attr in (
            "execute",
            "run",
            "row",
            "rows",
            "many",
            "append",
        ):
            for part in ast.walk(call.args[0]) if call.args else ():
                assert not isinstance(part, (ast.JoinedStr, ast.Mod)), (
                    f"line {call.lineno}: names and values are parameters, never part of a statement"
                )


def patterns(file: Path) -> Iterator[tuple[str, int]]:
    """The regular expressions of a module: those it has when it is loaded, and those written where they are used."""
    module = importlib.import_module(".".join(["postroom", *file.relative_to(SOURCE).with_suffix("").parts]))
    for value in vars(module).values():
        for each in value.values() if isinstance(value, dict) else (value,):
            if isinstance(getattr(each, "pattern", None), str) and hasattr(each, "fullmatch"):
                yield each.pattern, each.flags
    for call in calls(file):
        if ast.unparse(call.func).startswith("re.") and call.args and isinstance(call.args[0], ast.Constant):
            yield str(call.args[0].value), 0


@pytest.mark.parametrize("file", [file for file in FILES if file.name != "__main__.py"], ids=lambda file: str(file))
def test_regular_expressions_mean_the_same_to_every_python(file: Path) -> None:
    """Before 3.11.5, which Debian 12 does not have, nested possessive quantifiers and atomic groups match wrongly."""
    for pattern, flags in patterns(file):
        parsed = repr(sre_parser.parse(pattern, flags & ~re.UNICODE | (flags & re.VERBOSE)))
        assert "POSSESSIVE_REPEAT" not in parsed, pattern
        assert "ATOMIC_GROUP" not in parsed, pattern


def test_sql_stands_in_the_store_only() -> None:
    statement = re.compile(r"\b(SELECT|INSERT INTO|UPDATE|DELETE FROM)\b [a-z]")
    for file in FILES:
        if SOURCE / "store" not in file.parents:
            assert not statement.search(file.read_text()), f"{file}: the store is the one seam to disk"


def test_every_commit_has_fault_points_and_every_fault_point_a_commit() -> None:
    text = "\n".join(file.read_text() for file in FILES if file.name != "faults.py")
    used = set(re.findall(r'transact\(\s*"([a-z-]+)"', text))
    used |= set(re.findall(r'label = "([a-z-]+)" if segment else "([a-z-]+)"', text).pop())
    assert used == set(faults.LABELS), "the kill test walks LABELS; a commit outside it is never tested"
    reached = set(re.findall(r'reach\("([a-z.-]+)"\)', text))
    assert set(faults.OTHERS) <= reached <= set(faults.POINTS)


@pytest.mark.parametrize("file", PROSE, ids=lambda file: str(file.relative_to(ROOT)))
def test_prose_sells_nothing(file: Path) -> None:
    found = re.search(
        r"\b(simply|just|obviously|easily|blazing|seamless(ly)?|powerful|robust|cutting-edge|world-class)\b",
        file.read_text(),
        re.IGNORECASE,
    )
    assert found is None, f"{found and found.group()!r}: say what it does"


#: Pages for users, without those on how it is made and what was decided.
PAGES = [
    *(ROOT / name for name in ("README.md", "docs/README.md", "docs/tutorial.md", "docs/glossary.md")),
    *(ROOT / "docs" / "coming-from.md", *sorted((ROOT / "docs" / "coming-from").glob("*.md"))),
    *sorted((ROOT / "docs" / "guide").glob("*.md")),
    *sorted((ROOT / "docs" / "reference").glob("*.md")),
]
#: An English of our own, and the words that engineers know instead.
OWN_ENGLISH = {
    r"stands? behind": "comes after",
    r"(what|that) nobody has": "unread, not received",
    r"set at a time": "in batches",
    r"all that watches": "every matching rule",
    r"longer than (it|they) may": "exceeded its limit of … s",
    r"(is|are|be) told (of|by)": "gets a message, is notified",
    r"hear[sd]? (of it|no more)": "learns of it",
    r"that which": "what, the one that",
    r"in the place of": "instead of, replaces",
    r"made anew": "rebuilt",
    r"tells? (its|their) way": "shows its history",
    r"what is in hand": "the current work",
    r"by what (it|they) says?": "by content",
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_users_read_the_words_that_engineers_know(page: Path) -> None:
    text = re.sub(r"\s+", " ", page.read_text())
    for phrase, better in OWN_ENGLISH.items():
        found = re.search(rf"\b{phrase}\b", text, re.IGNORECASE)
        assert found is None, f"{found and found.group()!r}: say it in plain words ({better})"


#: The same for those who read the code, beside the phrases above.
OWN_ENGLISH_OF_DOCSTRINGS = {
    r"answers with": "returns",
    r"lets? go": "releases",
    r"comes? by": "the next receiver, the next process",
    r"works? out": "computes, evaluates",
    r"(is|are|was|were) worked out": "is computed",
    r"leads? to nothing": "fails, has no effect",
    r"has in hand": "has not confirmed, is processing",
}


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SOURCE)))
def test_docstrings_have_the_words_that_engineers_know(file: Path) -> None:
    if file.parent.name == "migrations":
        return  # a released one is never edited
    for node in ast.walk(tree(file)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            text = re.sub(r"\s+", " ", ast.get_docstring(node) or "")
            for phrase, better in (OWN_ENGLISH | OWN_ENGLISH_OF_DOCSTRINGS).items():
                found = re.search(rf"\b{phrase}\b", text, re.IGNORECASE)
                assert found is None, f"{text!r}: {found and found.group()!r}: say it in plain words ({better})"


#: What the documentation of Spark names. Anything else of it is in one file.
SPARK_MODULES = {
    "pyspark": {"SparkConf", "SparkContext", "TaskContext"},
    "pyspark.errors": set(),
    "pyspark.sql": set(),
    "pyspark.sql.datasource": set(),
    "pyspark.sql.functions": set(),
    "pyspark.sql.streaming.datasource": set(),
    "pyspark.sql.types": set(),
}
INTERNALS = SOURCE / "engine" / "spark" / "internals.py"
#: What Python itself documents.
DOCUMENTED = {"_exit", "_asdict", "_field_defaults", "_fields", "_make", "_replace"}


def private_of_others(file: Path, ours: set[str]) -> Iterator[str]:
    """Names of Spark and py4j that nobody promises, and private attributes that none of our classes has."""
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in ("pyspark", "py4j"):
            named = SPARK_MODULES.get(node.module)
            yield from (
                f"{node.module}.{each.name}"
                for each in node.names
                if named is None or (named and each.name not in named)
            )
        elif isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name.split(".")[0] == "py4j")
        elif isinstance(node, ast.Attribute) and re.match("_[a-z]", node.attr):
            if node.attr not in ours | DOCUMENTED:
                yield node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from re.findall(r"\b(?:org\.apache\.\w+|scala\.[A-Za-z]\w+)[\w.]*", node.value)


def own_private_names() -> set[str]:
    """What our own modules and classes call by a private name."""
    found = set()
    for node in (node for file in FILES if file != INTERNALS for node in ast.walk(tree(file))):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self" and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
    return found


def test_private_names_of_spark_are_in_one_file(tmp_path: Path) -> None:
    ours = own_private_names()
    assert list(private_of_others(INTERNALS, ours)), "the check can fail"
    odd = tmp_path / "odd.py"
    odd.write_text(
        "from pyspark.sql.classic import x\nsession._jvm\nimport py4j.protocol\ny = 'org.apache.spark.Odd'\n"
    )
    assert len(list(private_of_others(odd, ours))) == 4
    for file in FILES:
        found = [] if file == INTERNALS else list(private_of_others(file, ours))
        assert found == [], f"{file}: it changes without notice; put it into engine/spark/internals.py"
