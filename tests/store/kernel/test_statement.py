"""Every statement of the store is one that both databases take, each in its own words."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import apsw
import apsw.ext
import psycopg
import pytest

import postroom
from postroom.store.kernel import statement
from postroom.store.kernel.statement import FOR_UPDATE, GREATEST, Statement, postgres_words
from postroom.store.sqlite.session import with_rows
from postroom.store.tables.field_index import _statement

STORE = Path(postroom.__file__).parent / "store"
#: Modules whose statements are of one database alone.
OF_ONE = ("sqlite/", "postgres", "upkeep/portable.py", "proof/schema.py", "migrations/", "files/")
VERBS = ("SELECT", "INSERT", "UPDATE", "DELETE", "WITH")


def modules() -> list[Path]:
    files = [file for file in sorted(STORE.rglob("*.py")) if file.name != "__init__.py"]
    return [file for file in files if not str(file.relative_to(STORE)).startswith(OF_ONE)]


def used_in_functions(file: Path) -> set[str]:
    """Constants that are run; one that is only a piece of others is not a statement by itself."""
    functions = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.FunctionDef)]
    names = {part.id for node in functions for part in ast.walk(node) if isinstance(part, ast.Name)}
    attributes = {part.attr for node in functions for part in ast.walk(node) if isinstance(part, ast.Attribute)}
    return names | attributes


def texts(value: object) -> Iterator[str]:
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, tuple) else (value,)
    for part in parts:
        if isinstance(part, str) and (part or postgres_words(part)).lstrip().startswith(VERBS):
            yield part


def statements() -> list[tuple[str, str]]:
    run = set().union(*(used_in_functions(file) for file in modules()))
    found = {}
    for file in modules():
        parts = file.relative_to(STORE).with_suffix("").parts
        module = importlib.import_module(".".join(("postroom.store", *parts)))
        if module is statement:
            continue
        for name, value in vars(module).items():
            if name in run and name.isupper():
                for text in texts(value):
                    found[f"{file.stem}.{name}: {text}"] = text
    for shape in ((), ((False,),), ((False, False), (False,))):  # a search is put together for its tests
        found[f"search {shape}"] = _statement(shape)
    return sorted(found.items())


@pytest.fixture(scope="module")
def sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[apsw.Connection]:
    file = tmp_path_factory.mktemp("statements") / "room.db"
    postroom.open(file).close()
    connection = apsw.Connection(str(file))
    yield connection
    connection.close()


def sqlite_refuses(connection: apsw.Connection, words: str) -> str | None:
    try:
        apsw.ext.query_info(connection, words)
    except apsw.Error as error:
        return str(error)
    return None


def postgres_refuses(connection: psycopg.Connection[tuple[object, ...]], words: str) -> str | None:
    pieces = words.split("?")
    numbered = pieces[0] + "".join(f"${number}{piece}" for number, piece in enumerate(pieces[1:], 1))
    result = connection.pgconn.prepare(b"", numbered.encode())
    return None if result.status == psycopg.pq.ExecStatus.COMMAND_OK else result.error_message.decode()


def test_there_are_statements_of_every_kind() -> None:
    found = [text for _, text in statements()]
    assert len(found) > 250
    assert {text.split()[0] for text in found if text.strip()} == set(VERBS)


def test_sqlite_takes_every_statement_in_its_words(sqlite: apsw.Connection) -> None:
    words = dict(statements()) | {f"{name} for several": with_rows(text, 3) or "" for name, text in statements()}
    refused = {name: sqlite_refuses(sqlite, text) for name, text in words.items() if text}
    assert {name: why for name, why in refused.items() if why} == {}


def test_postgres_takes_every_statement_in_its_words(postgres_url: str) -> None:
    postroom.open(postgres_url).close()
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        words = {name: postgres_words(text) for name, text in statements()}
        words |= {f"{name} for many": text.setwise or "" for name, text in statements() if isinstance(text, Statement)}
        refused = {name: postgres_refuses(connection, text) for name, text in words.items() if text}
    assert {name: why for name, why in refused.items() if why} == {}


def test_the_check_itself_can_fail(sqlite: apsw.Connection, postgres_url: str) -> None:
    assert sqlite_refuses(sqlite, "SELECT greatest(id, ?) FROM queues") is not None
    postroom.open(postgres_url).close()
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        assert postgres_refuses(connection, "SELECT id FROM queues WHERE name IN (SELECT value FROM json_each(?))")


def test_a_statement_of_one_database_alone_says_so_and_there_are_few() -> None:
    alone = {name.partition(":")[0] for name, text in statements() if not text or not postgres_words(text)}
    assert alone == {
        "journal._ARRIVED",
        "message_rows._INSERT_ALIKE",
        "mending._SET_TALLY",
        "queues._SHARABLE",
        "queues._SHARE",
        "queues._TALLY",
        "tracking._ALONE",
        "tracking._WITH_OTHERS",
    }


def test_pieces_keep_both_words_wherever_they_stand() -> None:
    whole = "SELECT " + GREATEST + "(a, ?) FROM t" + FOR_UPDATE
    assert whole == "SELECT max(a, ?) FROM t"
    assert isinstance(whole, Statement)
    assert whole.postgres == "SELECT greatest(a, ?) FROM t FOR NO KEY UPDATE"
    assert whole.setwise is None
    assert postgres_words("SELECT 1") == "SELECT 1"
    assert (whole + FOR_UPDATE).postgres.endswith(" FOR NO KEY UPDATE FOR NO KEY UPDATE")
