"""Temporary tables and Spark SQL over them, and over nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from tests.stations.world import desk, network

from postroom.engine.spark import internals
from postroom.errors import ArgumentInvalid, SqlRefused, TableUnknown
from postroom.room import Postroom
from postroom.stations.queries import sql_process
from postroom.stations.station import Station

FORMS = """\
type ORDER
| Order No: ______ Amount: ______ KEY: ____________ |
| Due: __________ Parts: __________ Paid: ___ At: _ |
field Order No string required
field Amount decimal free
field KEY key automatic
field Due date free
field Parts list of string free
field Paid boolean free
field At timestamp free

type INVOICE
| Order No: ______ Sum: ______ |
field Order No string required
field Sum decimal free
"""


@pytest.fixture
def room(url: str, tmp_path: Path, spark: SparkSession) -> Iterator[Postroom]:
    nodes = {"north": str(tmp_path / "north.db")}
    with network(url, tmp_path, nodes, {"ann": "north", "cid": "control"}, FORMS) as opened:
        yield opened


@pytest.fixture
def ann(room: Postroom) -> Station:
    there = desk(room, "ann")
    there.create_many(
        "ORDER",
        [
            {"Order No": "o1", "Amount": "10.50", "Due": "2026-01-31", "Parts": "a, b", "Paid": "true",
             "At": "2026-01-31T12:00:00Z"},
            {"Order No": "o2", "Amount": "7"},
            {"Order No": "o3"},
        ],
    )  # fmt: skip
    desk(room, "cid").create_many("INVOICE", [{"Order No": "o1", "Sum": "10.50"}, {"Order No": "o2", "Sum": "8"}])
    return there


@pytest.fixture(scope="module")
def orders(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[Station]:
    """A station with a table, for statements that must not change it."""
    folder = tmp_path_factory.mktemp("orders")
    with network(str(folder / "room.db"), folder, {}, {"cid": "control"}, FORMS) as room:
        there = desk(room, "cid")
        there.create("ORDER", {"Order No": "o1", "Parts": "a, b"})
        there.query("ORDER", into="orders")
        yield there


def test_tables_are_kept_shown_replaced_and_dropped(ann: Station) -> None:
    ann.query("ORDER", {"Order No": "<> o3"}, into="orders")
    answer = ann.query("INVOICE", scope="global", into="invoices")
    assert [(table.name, table.type, table.images, table.query) for table in ann.tables()] == [
        ("invoices", "INVOICE", 2, answer.seq),
        ("orders", "ORDER", 2, 0),
    ]
    assert [image.place for image in ann.table("invoices")] == ["cid", "cid"]
    ann.query("ORDER", into="orders")
    assert len(ann.table("orders")) == 3
    ann.drop_table("orders")
    with pytest.raises(TableUnknown, match="query TYPE --into orders"):
        ann.table("orders")
    with pytest.raises(ArgumentInvalid, match="not a name"):
        ann.query("ORDER", into="two words")


def test_images_do_not_follow_their_messages(ann: Station) -> None:
    ann.query("ORDER", into="orders")
    ann.ship([image.key for image in ann.messages()], "cid")
    assert {image.place for image in ann.table("orders")} == {"ann"}
    assert len(ann.query("ORDER")) == 0


def test_joins_over_types(ann: Station) -> None:
    ann.query("ORDER", into="orders")
    ann.query("INVOICE", scope="global", into="invoices")
    found = ann.sql(
        """WITH open AS (SELECT * FROM orders WHERE Amount IS NOT NULL)
        SELECT o.Order_No, i.Sum - o.Amount AS more, i.place FROM open o JOIN invoices i USING (Order_No)
        WHERE EXISTS (SELECT 1 FROM orders x WHERE x.key = o.key) ORDER BY 1"""
    )
    assert found.columns == ("Order_No", "more", "place")
    assert [(row[0], float(row[1]), row[2]) for row in found.rows] == [("o1", 0.0, "cid"), ("o2", 1.0, "cid")]
    typed = ann.sql("SELECT Due, Parts, Paid, At, key FROM orders ORDER BY Order_No LIMIT 1").as_dict()
    assert typed["rows"][0][:3] == ["2026-01-31", ["a", "b"], True]
    assert ann.sql("SELECT count(*), sum(Amount) FROM orders").as_dict()["rows"] == [[3, "17.5"]]


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM csv.`/etc/passwd`",
        "SELECT * FROM text.`/etc/passwd`",
        "WITH t AS (SELECT * FROM text.`/etc/passwd`) SELECT * FROM t",
        "SELECT reflect('java.lang.System', 'getProperty', 'user.home')",
        "SELECT java_method('java.lang.System', 'exit', 1)",
        "SELECT try_reflect('java.lang.System', 'gc')",
        "SELECT (SELECT reflect('java.lang.System', 'gc')) FROM orders",
        "SELECT * FROM orders WHERE key IN (SELECT input_file_name())",
        "SELECT transform(Parts, x -> reflect('java.lang.System', 'gc')) FROM orders",
        "SELECT * FROM orders ORDER BY reflect('java.lang.System', 'gc')",
        "SELECT sum(1) OVER (PARTITION BY version()) FROM orders",
        "SELECT * FROM orders LATERAL VIEW explode(array(current_user())) AS u",
        "SELECT * FROM IDENTIFIER('csv.`/etc/passwd`')",
        "SELECT * FROM range(3)",
        "SELECT * FROM nowhere",
        "SELECT TRANSFORM(key) USING 'cat' FROM orders",
        "DROP TABLE orders",
        "CREATE TABLE x AS SELECT 1",
        "CREATE VIEW x AS SELECT 1",
        "INSERT INTO orders SELECT 1",
        "SET spark.sql.runSQLOnFiles=true",
        "ADD JAR 'x.jar'",
        "CREATE FUNCTION f AS 'x'",
        "EXPLAIN SELECT * FROM orders",
        "SELECT * FROM orders; DROP TABLE orders",
        "SELECT nothing FROM orders",
        "SELECT IDENTIFIER('reflect')('java.lang.System', 'getenv', 'HOME')",
        "SELECT IDENTIFIER('ref' || 'lect')('java.lang.System', 'getenv', 'HOME') FROM orders",
        "FROM orders |> SET Order_No = reflect('java.lang.System', 'getenv', 'HOME')",
        "FROM (SELECT reflect('java.lang.System', 'getenv', 'HOME') AS z) |> WHERE z <> '' |> AGGREGATE max(z)",
        "SELECT rank() OVER w FROM orders WINDOW w AS (ORDER BY reflect('java.lang.System', 'gc'))",
        "SELECT rank() OVER (PARTITION BY reflect('java.lang.System', 'gc') ORDER BY key) FROM orders",
        "SELECT * EXCEPT (key) FROM text.`/etc/passwd`",
        "SELECT current_user",
        "SELECT user FROM orders",
        "EXECUTE IMMEDIATE 'SELECT 1'",
        "SELECT " + "(" * 2000 + "1" + ")" * 2000,  # more than Java's stack: from 1,000 on
        "SELECT '\udcff'",
        "SELEC",
        "",
    ],
)
def test_nothing_else_is_reached(orders: Station, statement: str) -> None:
    with pytest.raises(SqlRefused):
        orders.sql(statement)
    assert len(orders.table("orders")) == 1


def test_variables_are_texts(orders: Station, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POSTROOM_SECRET", "told")
    assert orders.sql("SELECT '${env:POSTROOM_SECRET}${system:user.home}' AS said").rows == (
        ("${env:POSTROOM_SECRET}${system:user.home}",),
    )


def test_queries_of_many_kinds_are_run(orders: Station) -> None:
    for statement, rows in (
        ("SELECT upper(Order_No) FROM orders WHERE Order_No LIKE 'o%' AND NOT (Paid <=> true)", (("O1",),)),
        ("SELECT explode(Parts) AS p FROM orders ORDER BY p DESC", (("b",), ("a",))),
        ("SELECT count(*) OVER (PARTITION BY place ORDER BY key ROWS UNBOUNDED PRECEDING) FROM orders", ((1,),)),
        ("SELECT transform(Parts, x -> x || '!') FROM orders", ((["a!", "b!"],),)),
        ("SELECT CASE WHEN Amount IS NULL THEN 'none' ELSE 'some' END, -1 + 2 * 3 FROM orders", (("none", 5),)),
        ("SELECT place, count(*) FROM orders GROUP BY place HAVING count(*) > 0 UNION ALL SELECT 'x', 1", None),
        ("SELECT * FROM orders o WHERE key IN (SELECT key FROM orders) AND Due BETWEEN DATE'2026-01-01' AND now()", ()),
        ("SELECT rank() OVER w FROM orders WINDOW w AS (ORDER BY key)", ((1,),)),
        ("SELECT place, sum(Amount) FROM orders GROUP BY ROLLUP (place)", None),
        ("SELECT CAST(key AS STRING) FROM orders LIMIT 1 OFFSET 0", None),
    ):
        found = orders.sql(statement).rows
        assert rows is None or found == rows, statement


def test_names_that_sql_would_not_tell_apart(tmp_path: Path, spark: SparkSession) -> None:
    form = "type T\n| Place: ____ fee: __ Fee: __ |\nfield Place string free\nfield fee int free\nfield Fee int free\n"
    with network(str(tmp_path / "room.db"), tmp_path, {}, {"cid": "control"}, form) as room:
        there = desk(room, "cid")
        there.create("T", Place="Toronto", fee=1, Fee=2)
        there.query("T", into="t")
        assert there.sql("SELECT place, Place_2, fee, Fee_2 FROM t").rows == (("cid", "Toronto", 1, 2),)


def test_tables_of_older_versions(tmp_path: Path, spark: SparkSession) -> None:
    with network(str(tmp_path / "room.db"), tmp_path, {}, {"cid": "control"}, FORMS) as room:
        there = desk(room, "cid")
        there.create("INVOICE", {"Order No": "o1", "Sum": "3"})
        file = tmp_path / "new.form"
        file.write_text("type INVOICE\n| Order No: ____ Sum: ___ Room: ___ |\nfield Order No int free\n"
                        "field Sum decimal free\nfield Room string required\n")  # fmt: skip
        room.load(file)
        there.create("INVOICE", {"Order No": 7, "Room": "rm 1"})
        there.query("INVOICE", into="t")
        assert there.sql("SELECT Order_No, Sum IS NULL, Room FROM t ORDER BY key").rows == (
            (None, False, None),
            (7, True, "rm 1"),
        )


def test_a_statement_and_its_answer_have_largest_sizes(ann: Station, monkeypatch: pytest.MonkeyPatch) -> None:
    ann.query("ORDER", into="orders")
    with pytest.raises(SqlRefused, match="characters"):
        ann.sql("SELECT 1 " + " " * 100_000)
    monkeypatch.setattr("postroom.stations.queries.sql.SQL_ROWS_MAX", 2)
    with pytest.raises(SqlRefused, match="more than 2 rows"):
        ann.sql("SELECT * FROM orders")


# --- what nobody has allowed ---


def test_a_class_that_nobody_has_allowed_is_refused_by_its_name() -> None:
    with pytest.raises(SqlRefused, match="nothing with InventedRelation"):
        sql_process._check(["Project", "InventedRelation"], internals.PARSED)
    with pytest.raises(SqlRefused, match="nothing with Invented"):
        sql_process._check(["Project", "Invented"], internals.ANALYZED)


@pytest.mark.parametrize("allowed", ["PARSED", "ANALYZED"])
def test_what_is_taken_from_the_list_is_not_run(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, allowed: str
) -> None:
    """As after a change in Spark that nobody has looked at."""
    statement = "SELECT n FROM (SELECT 1 AS n) WHERE n = 1"

    def run() -> list[object]:
        found: list[object] = sql_process.run(spark.newSession(), lambda _: None, statement, {}, 10, 100)["rows"]
        return found

    assert run() == [[1]]
    monkeypatch.setattr(internals, allowed, getattr(internals, allowed) - {"Filter"})
    with pytest.raises(SqlRefused, match="nothing with Filter"):
        run()


def test_what_comes_down_to_something_else_is_refused(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """A function of the machine's own, let in by its name, is stopped by the class that it becomes."""
    session = spark.newSession()
    known = {**sql_process._functions(session), "version": "Upper", "current_user": "Upper"}
    monkeypatch.setattr(sql_process, "_known", known)
    for statement, kind in (("SELECT version()", "SparkVersion"), ("SELECT current_user()", "CurrentUser")):
        with pytest.raises(SqlRefused, match=f"nothing with {kind}"):
            sql_process.run(session, lambda _: None, statement, {}, 10, 100)


STATEMENTS = """
SELECT DISTINCT place FROM t WHERE a LIKE 'o%' AND NOT (p <=> true) OR a ILIKE 'x' OR a RLIKE 'y'
SELECT lag(n, 1) OVER (ORDER BY n), sum(n) OVER (ORDER BY n RANGE BETWEEN 1 PRECEDING AND UNBOUNDED FOLLOWING) FROM t
SELECT transform(l, x -> x || '!'), aggregate(l, '', (s, x) -> s || x), l[0], map('a', 1)['a'], struct(n).n FROM t
SELECT place, sum(m) FROM t GROUP BY CUBE (place, a) HAVING count(*) > 0 UNION SELECT 'x', 1
SELECT a FROM t INTERSECT SELECT a FROM t EXCEPT ALL SELECT 'x'
SELECT * FROM t o WHERE n = (SELECT max(n) FROM t WHERE t.a = o.a) AND a NOT IN (SELECT a FROM t)
WITH w AS (SELECT * FROM t) SELECT x.n FROM w x FULL JOIN w y USING (a) WHERE EXISTS (SELECT 1 FROM t WHERE t.n > x.n)
SELECT * FROM t x, LATERAL (SELECT y.n FROM t y WHERE y.a = x.a) z LATERAL VIEW OUTER posexplode(l) e AS at, part
SELECT * FROM (SELECT place, n FROM t) PIVOT (sum(n) FOR place IN ('p', 'q'))
SELECT * FROM (SELECT a, n, n + 1 AS k FROM t) UNPIVOT (v FOR name IN (n, k)) ORDER BY v NULLS LAST LIMIT 3 OFFSET 1
SELECT d + INTERVAL 1 DAY, d - d, at - at, at + INTERVAL 1 MONTH, INTERVAL 2 DAY * 2, year(d) FROM t
SELECT count(DISTINCT n), stddev(m), collect_list(n), percentile(m, 0.5), max_by(a, n) FILTER (WHERE n > 1) FROM t
SELECT coalesce(a, 'x'), nvl2(a, 1, 2), nullif(a, 'x'), round(m, 2), try_divide(n, 0), n IS DISTINCT FROM 1 FROM t
SELECT to_json(struct(n)), from_json('{"a":1}', 'a INT'), split(a, ','), lpad(a, 5, ' '), sha2(a, 256), n::string FROM t
"""


def kinds_refused(session: SparkSession, statement: str) -> list[str]:
    """What a statement that the parser's list lets in comes down to, and may not."""
    if any(kind not in internals.PARSED for _, kind in internals.parsed(session, statement)):
        return []
    allowed = internals.ANALYZED.union(sql_process._functions(session).values())
    return [kind for kind in internals.analyzed(session.sql(statement)) if kind not in allowed]


@pytest.fixture
def table(spark: SparkSession) -> SparkSession:
    session = spark.newSession()
    columns = "a string, place string, n bigint, m decimal(38,10), p boolean, l array<string>, d date, at timestamp"
    session.createDataFrame([], columns).createOrReplaceTempView("t")
    return session


@pytest.mark.slow
def test_what_people_ask_for_is_allowed(table: SparkSession) -> None:
    for statement in STATEMENTS.strip().splitlines():
        assert kinds_refused(table, statement) == [], statement


@pytest.mark.slow
def test_every_function_that_may_be_used_comes_down_to_what_is_allowed(table: SparkSession) -> None:
    """By the examples of Spark's own documentation, as far as this Spark can plan them."""
    infos = table._jvm.org.apache.spark.sql.api.python.PythonSQLUtils.listBuiltinFunctionInfos()  # type: ignore[union-attr]
    planned, refused = 0, dict[str, list[str]]()
    for info in infos:
        if str(info.getName()).lower() not in sql_process._functions(table):
            continue
        for example in re.findall(r">\s*(SELECT[^;]*);\s*$", str(info.getExamples()), re.MULTILINE)[:1]:
            try:
                kinds = kinds_refused(table, example)
            except PySparkException:  # types that have to be switched on, tables that are not there
                continue
            planned += 1
            if kinds:
                refused[example] = kinds
    assert refused == {}
    assert planned > 300
