"""What we use of Spark beyond its documentation is there, in the version that it was written for."""

from __future__ import annotations

import ast
import inspect
import re

import py4j.version
import pyspark
import pytest
from pyspark import SparkContext, cloudpickle
from pyspark.sql import SparkSession

from postroom.engine.spark import internals
from postroom.engine.spark.internals import ANALYZED, NOISY, OFTEN_ASKED, PARSED, SPARK_VERSION, TREES

#: Where the classes of operators and expressions are. Those that end in ``$`` are objects of Scala.
PACKAGES = [
    f"org.apache.spark.sql.{name}."
    for name in (
        "catalyst.expressions",
        "catalyst.expressions.aggregate",
        "catalyst.expressions.json",
        "catalyst.expressions.objects",
        "catalyst.expressions.variant",
        "catalyst.expressions.xml",
        "catalyst.plans.logical",
        "catalyst.analysis",
        "execution",
    )
]


def test_spark_is_the_one_that_this_was_written_for() -> None:
    assert pyspark.__version__ == SPARK_VERSION == "4.3.0", "read engine/spark/internals.py, and then change it there"
    assert py4j.version.__version__ == "0.10.9.9"


def test_every_private_attribute_is_there(spark: SparkSession) -> None:
    owners = [SparkContext, SparkSession, spark, spark.sparkContext, spark.range(1)]
    tree = ast.parse(inspect.getsource(internals))
    names = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and re.match("_[a-z]", node.attr)}
    names.discard("_1")
    assert {"_gateway", "_jvm", "_jdf", "_jsc", "_jsparkSession"} <= names
    for name in names:
        assert any(hasattr(owner, name) for owner in owners), f"{name} is gone"


@pytest.mark.parametrize("name", [*NOISY, *TREES])
def test_every_class_that_is_named_is_there(spark: SparkSession, name: str) -> None:
    assert _class_of(spark, name) == name


def test_names_that_jobs_ask_for_are_there(spark: SparkSession) -> None:
    for name in OFTEN_ASKED:
        assert "JavaClass" in type(getattr(spark._jvm, name)).__name__


@pytest.mark.parametrize("allowed", [PARSED, ANALYZED], ids=["parsed", "analyzed"])
def test_every_class_that_is_allowed_is_there(spark: SparkSession, allowed: frozenset[str]) -> None:
    gone = [name for name in sorted(allowed) if not any(_class_of(spark, each + name) for each in PACKAGES)]
    assert gone == [], "a name that nothing has may be another's tomorrow"


def _class_of(spark: SparkSession, name: str) -> str | None:
    """Its name, if Java has it; a look does not load it."""
    loader = spark._jvm.java.lang.Thread.currentThread().getContextClassLoader()  # type: ignore[union-attr]  # it runs
    return None if loader.getResource(name.replace(".", "/") + ".class") is None else name


def test_a_plan_is_told(spark: SparkSession) -> None:
    assert "Range" in internals.plan_of(spark.range(3))
    assert not internals.has_ended(spark)
    assert internals.has_java()
    assert internals.has_session()
    process = internals.java()
    assert process is not None
    assert process.poll() is None


def test_the_parts_of_a_statement_are_seen_wherever_they_stand(spark: SparkSession) -> None:
    statement = "WITH w AS (SELECT upper(a) AS x FROM t) SELECT (SELECT max(x) FROM w), b.c FROM b ORDER BY lower(c)"
    nodes = internals.parsed(spark, statement)
    by_kind: dict[str, list[str]] = {}
    for node, kind in nodes:
        if kind == "UnresolvedRelation":
            by_kind.setdefault(kind, []).append(internals.relation_name(node))
        elif kind == "UnresolvedFunction":
            by_kind.setdefault(kind, []).append(internals.function_name(node))
        elif kind == "UnresolvedWith":
            by_kind.setdefault(kind, []).extend(internals.names_of_with(node))
    assert {kind: sorted(names) for kind, names in by_kind.items()} == {
        "UnresolvedRelation": ["b", "t", "w"],
        "UnresolvedFunction": ["lower", "max", "upper"],
        "UnresolvedWith": ["w"],
    }
    assert {"Project", "Upper"} <= set(internals.analyzed(spark.sql("SELECT upper('a')")))


def test_functions_are_known_by_their_group_and_class(spark: SparkSession) -> None:
    functions = internals.functions(spark)
    assert functions["upper"] == ("string_funcs", "Upper")
    assert functions["reflect"] == ("misc_funcs", "CallMethodViaReflection")


def test_functions_of_a_module_go_by_value() -> None:
    """Ours do not: a cluster has them."""
    internals.send_by_value([ast.parse, internals.java])
    try:
        assert cloudpickle.list_registry_pickle_by_value() == {"ast"}  # type: ignore[no-untyped-call]  # Spark's own copy
    finally:
        cloudpickle.unregister_pickle_by_value(ast)  # type: ignore[no-untyped-call]  # Spark's own copy
