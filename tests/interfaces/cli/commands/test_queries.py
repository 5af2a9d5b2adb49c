"""Commands that ask stations: query, table and sql."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ...conftest import Run
from ..conftest import damage, sketch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def fees(office: Run) -> Run:
    said = [{"Payer": name, "Fee": fee} for name, fee in (("IBM", 5), ("HP", 10), ("DEC = x", 15), ("Sun", 20))]
    assert office("create", "FEE", stdin=json.dumps(said)).code == 0
    return office


def test_a_condition_is_what_stands_behind_the_field(fees: Run) -> None:
    cases: list[tuple[str, set[str]]] = [
        ("Fee=10", {"HP"}),
        ("Fee==10", {"HP"}),
        ("Fee=>10", {"DEC = x", "Sun"}),
        ("Fee>10", {"DEC = x", "Sun"}),
        ("Fee >= 10", {"HP", "DEC = x", "Sun"}),
        ("Fee<10", {"IBM"}),
        ("Fee<=10", {"IBM", "HP"}),
        ("Fee<>10", {"IBM", "DEC = x", "Sun"}),
        ("Fee=<>10", {"IBM", "DEC = x", "Sun"}),
        ("Fee=10..15", {"HP", "DEC = x"}),
        ("Payer=*P*", {"HP"}),
        ('Payer="IBM" "HP"', {"IBM", "HP"}),
        ('Payer="DEC = x"', {"DEC = x"}),
        ("Fee=", {"IBM", "HP", "DEC = x", "Sun"}),
    ]
    for condition, found in cases:
        answer = fees("query", "FEE", condition, "--json").json
        assert answer["seq"] is None
        assert {image["fields"]["Payer"] for image in answer["images"]} == found, condition


def test_a_query_is_a_table_a_number_or_a_form_on_standard_input(fees: Run) -> None:
    told = fees("query", "FEE", "Fee>10", "Payer=S*")
    assert told.out.splitlines()[0].split() == ["key", "place", "fields"]
    assert told.out.splitlines()[1].split(maxsplit=1)[1] == "Dennis  Payer: Sun, Fee: 20"
    assert fees("query", "FEE", "Fee>10", "--count").out == "2\n"
    assert fees("query", "FEE", "Fee>10", "--count", "--json").json == {"status": "00", "seq": None, "count": 2}
    assert fees("query", "FEE", "--count").out == "4\n"
    assert fees("query", "FEE", "--count", stdin=sketch(Payer="IBM")).out == "1\n"
    assert fees("query", "FEE", "--count", stdin=sketch()).out == "4\n"
    none = fees("query", "FEE", "Fee>100")
    assert (none.code, none.out, none.err) == (0, "", "no message found\n")
    assert fees("query", "FEE", "Fee>1", "--as", "Simon").err.startswith("postroom: argument-invalid: password:")


def test_what_cannot_be_asked_is_told_in_one_line(fees: Run) -> None:
    cases = [
        (["FEE", "Fee"], "", "argument-invalid: FIELD=CONDITION: 'Fee' is not a field with a condition"),
        (["FEE", ">1"], "", "argument-invalid: FIELD=CONDITION: '>1' is not a field with a condition"),
        (["FEE", "Fee>1", "Fee<3"], "", "argument-invalid: Fee: this field is named twice"),
        (["FEE", "Fee>x"], "", "form-invalid: field Fee, character 2: field 'Fee' takes a number"),
        (["FEE", "Fe>1"], "", "form-invalid: field Fe: type FEE has no field 'Fe'"),
        (["FE", "Fee>1"], "", "type-unknown:"),
        (["FEE"], "hello", "form-invalid: standard input:1:1: this is no line of the form FEE"),
        (["FEE", "Fee>1", "--into", "a b"], "", "argument-invalid: into: 'a b' is not a name"),
    ]
    for words, stdin, said in cases:
        told = fees("query", *words, stdin=stdin)
        assert (told.code, told.out, told.err.count("\n")) == (1, "", 1)
        assert told.err.startswith(f"postroom: {said}")


def test_damaged_messages_are_named(fees: Run, tmp_path: Path) -> None:
    key = fees("next", "--json").json["message"]["key"]
    damage(tmp_path, "IBM", "HAL")
    assert fees("query", "FEE").err == f"left out, because they are damaged: {key}\n"
    assert fees("query", "FEE", "--count").out == "3\n"
    assert fees("query", "FEE", "--json").json["damaged"] == [key]


def test_temporary_tables_are_listed_shown_and_dropped(fees: Run) -> None:
    assert fees("table", "list").err == "none; make one with: postroom query TYPE --into NAME\n"
    kept = fees("query", "FEE", "Fee>10", "--into", "big")
    assert (len(kept.out.splitlines()), kept.err) == (3, "2 saved as big; query them with: postroom sql\n")
    assert fees("table", "list").out.splitlines()[1].split() == ["big", "FEE", "2", "local"]
    assert fees("table", "list", "--json").json == {
        "status": "00",
        "tables": [{"name": "big", "type": "FEE", "image_count": 2, "seq": None}],
    }
    assert fees("table", "show", "big").out == kept.out
    assert len(fees("table", "show", "big", "--json").json["images"]) == 2
    assert fees("table", "show", "bg").err.startswith("postroom: table-unknown: Dennis has no temporary table bg (")
    assert fees("table", "drop", "big").out == "dropped big\n"
    assert fees("table", "drop", "big").err.startswith("postroom: table-unknown:")
    fees("query", "FEE", "--into", "all", "--count")
    assert fees("table", "drop", "all", "--json").json == {"status": "00", "table": "all"}


@pytest.mark.parametrize("scope", ["local", "global"])
def test_small_queries_do_without_spark_and_arrow(fees: Run, tmp_path: Path, scope: str) -> None:
    script = (
        "import sys\nfrom postroom.interfaces.cli.main import main\n"
        f"sys.argv = ['postroom', 'query', 'FEE', 'Fee>1', '--scope', '{scope}', '--into', 'all', '--count']\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert end.code in (0, None)\n"
        "print(sorted({'pyspark', 'pyarrow', 'pandas'} & sys.modules.keys()))"
    )
    told = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (told.returncode, told.stdout) == (0, "4\n[]\n"), told.stderr


def test_queries_over_nodes_and_sql(fees: Run, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("postroom.room.stations.spark_session", lambda _master, _conf: spark)
    first = fees("next", "--json").json["message"]["key"]
    fees("ship", first, "Simon")
    monkeypatch.setenv("POSTROOM_PASSWORD", "s")
    assert fees("query", "FEE", "--scope", "stations=Simon", "--count", "--as", "Simon").out == "0\n"
    everywhere = fees("query", "FEE", "Fee<20", "--scope", "global", "--into", "all", "--json")
    assert [image["place"] for image in everywhere.json["images"]] == ["mailbox:Simon", "Dennis", "Dennis"]
    assert isinstance(everywhere.json["seq"], int)
    fees("get", "--as", "Simon")
    told = fees("query", "FEE", "--scope", "global", "--timeout", "100")
    assert [line.split()[:2] for line in told.out.splitlines()][:2] == [["key", "place"], [first, "Simon"]]
    counted = fees("query", "FEE", "--scope", "group", "--count", "--json").json
    assert (counted["count"], counted["seq"] > everywhere.json["seq"]) == (3, True)
    assert fees("table", "list", "--json").json["tables"][0]["seq"] == everywhere.json["seq"]
    asked = fees("sql", "SELECT Payer, Paid IS NULL AS unpaid, array('x', 'y') AS l FROM all ORDER BY Fee")
    assert [line.split() for line in asked.out.splitlines()][:2] == [
        ["Payer", "unpaid", "l"],
        ["IBM", "true", "x,", "y"],
    ]
    shaped = fees("sql", "SELECT count(*) AS n FROM all", "--json").json
    assert shaped == {"status": "00", "columns": ["n"], "rows": [[3]]}
    assert fees("sql", "DROP TABLE all").err.startswith("postroom: sql-refused: the statement is refused:")
    assert fees("query", "FEE", "--scope", "nowhere").err.startswith("postroom: argument-invalid: scope: 'nowhere'")
    assert fees("query", "FEE", "--scope", "stations=Smon").err.startswith("postroom: station-unknown:")
    assert fees("query", "FEE", "--scope", "group", "--timeout", "0").err.startswith("postroom: argument-invalid: time")
