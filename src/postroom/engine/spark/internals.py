"""All uses of undocumented names of Spark and py4j, in one file to check when Spark is upgraded.

``tests/engine/spark/test_internals.py`` pins the version and looks up every name. A house test keeps such names out of
other files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from py4j.java_gateway import JavaObject, is_instance_of
from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark import SparkConf, SparkContext, cloudpickle
from pyspark.java_gateway import launch_gateway
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from postroom.engine.way import modules_of

__all__ = ["Py4JError", "Py4JJavaError", "Py4JNetworkError", "to_arrow_schema"]

SPARK_VERSION = "4.3.0"
#: What prints a page whenever a task fails; why it failed is told to whoever asked for it.
NOISY = ("org.apache.spark.executor.Executor", "org.apache.spark.scheduler.TaskSetManager")
#: What every job asks for by a short name. To find where it belongs, Java goes through all its archives.
OFTEN_ASKED = ("PythonSQLUtils", "PythonUtils", "SimplePythonFunction")
TREES = ("org.apache.spark.sql.catalyst.trees.TreeNode", "scala.collection.IterableOnce", "scala.Product")
#: What a query is made of, as Spark's parser has it. Anything else is refused.
PARSED = frozenset(
    """
    Add Aggregate Alias And BaseGroupingSets Between BitwiseAnd BitwiseNot BitwiseOr BitwiseXor CaseWhen Cast
    Concat CreateNamedStruct CreateStruct Cube CurrentDate CurrentRow$ CurrentTimestamp Distinct Divide
    EqualNullSafe EqualTo Except Exists Filter Generate GlobalLimit GreaterThan GreaterThanOrEqual GroupingSets
    ILike In InSubquery IntegralDivide Intersect IsNotNull IsNotUnknown IsNull IsUnknown Join LambdaFunction
    LateralJoin LateralSubquery LessThan LessThanOrEqual Like LikeAll LikeAny ListQuery Literal LocalLimit
    MultiAlias Multiply NamedArgumentExpression Not NotLikeAll NotLikeAny Offset OneRowRelation Or OuterReference
    Pivot Project RLike Remainder Rollup ScalarSubquery Sort SortOrder SpecifiedWindowFrame SubqueryAlias Subtract
    UnaryMinus UnaryPositive UnboundedFollowing$ UnboundedPreceding$ Union Unpivot UnresolvedAlias
    UnresolvedAttribute UnresolvedExtractValue UnresolvedFunction UnresolvedGenerator UnresolvedHaving
    UnresolvedInlineTable UnresolvedNamedLambdaVariable UnresolvedOrdinal UnresolvedRelation UnresolvedStar
    UnresolvedSubqueryColumnAliases UnresolvedWindowExpression UnresolvedWith UnspecifiedFrame$ WindowExpression
    WindowSpecDefinition WindowSpecReference WithWindowDefinition
    """.split()
)
#: The same when names are resolved, besides the classes that functions become.
ANALYZED = frozenset(
    """
    Aggregate AggregateExpression Alias ApproxTopKEstimate AttributeReference BinaryPad BinaryPredicate
    BitmapBitPosition CTERelationDef CTERelationRef Ceil Collate CommonExpressionDef CommonExpressionRef Contains
    CountMinSketchAgg CounterDiff CounterDiffWithStartTime CurrentRow$ CurrentTimestamp DateAddInterval
    DateAddYMInterval DatetimeSub Distinct DivideDTInterval DivideInterval DivideYMInterval EndsWith Except Exists
    Expand Explode ExtractANSIIntervalDays ExtractANSIIntervalHours ExtractANSIIntervalMinutes
    ExtractANSIIntervalMonths ExtractANSIIntervalSeconds ExtractANSIIntervalYears Filter Floor Generate
    GetArrayItem GetArrayStructFields GetMapValue GetStructField GlobalLimit HllSketchEstimate Hour InSubquery
    Inline Intersect Join KllSketchGetNBigint KllSketchGetNDouble KllSketchGetNFloat KllSketchToStringBigint
    KllSketchToStringDouble KllSketchToStringFloat KnownNullable LambdaFunction LateralJoin LateralSubquery
    LikeAll LikeAny ListQuery Literal LocalLimit LocalRelation LocalTimestamp LogicalRDD MakeTimestamp
    MakeTimestampFromDateTime MakeTimestampNTZ Mask MaxBy MaxMinByK MinBy Minute Mode MultiplyDTInterval
    MultiplyInterval MultiplyYMInterval NamedLambdaVariable NotLikeAll NotLikeAny Now NullIfResult Offset
    OneRowRelation OuterReference PercentileCont PercentileDisc PivotFirst PosExplode PreciseTimestampConversion
    Project ResolvedCollation RoundCeil RoundFloor ScalarSubquery Second SecondWithFraction Sort SortOrder
    SpecifiedWindowFrame StartsWith StringDecode StringInstr StringInstrWithOccurrence StringLPad StringRPad
    SubqueryAlias SubtractDates SubtractTimestamps ThetaSketchEstimate TimeBucket TimestampAdd
    TimestampAddInterval TimestampAddYMInterval TimestampDiff ToCharacter TryEval TryMakeTimestamp
    TryMakeTimestampFromDateTime TupleSketchAggDouble TupleSketchAggInteger TupleSketchEstimateDouble
    TupleSketchEstimateInteger TupleUnionAggDouble TupleUnionAggInteger UnboundedFollowing$ UnboundedPreceding$
    Union UnionLoop UnionLoopRef View Window WindowExpression WindowSpecDefinition With WithCTE
    """.split()
)

#: Sources of a streaming query have names, and may come and go between two runs.
SOURCE_EVOLUTION = "spark.sql.streaming.queryEvolution.enableSourceEvolution"


def kafka_package() -> str:
    """The Maven package that Spark needs for Kafka."""
    return f"org.apache.spark:spark-sql-kafka-0-10_2.13:{SPARK_VERSION}"


# --- Java and its session ---


def has_java() -> bool:
    return SparkContext._gateway is not None


def java() -> Any:
    """The Java process; None if there is none, or if we did not start it, as with spark-submit."""
    return getattr(SparkContext._gateway, "proc", None)


def start_java(conf: SparkConf, error_output: int) -> None:
    gateway = launch_gateway(conf, {"stderr": error_output})  # type: ignore[no-untyped-call]  # Spark left it untyped
    SparkContext._gateway, SparkContext._jvm = gateway, gateway.jvm


def has_session() -> bool:
    return SparkContext._active_spark_context is not None


def end_session() -> Any:
    """End the session of this process and its connection to Java; returns the Java process."""
    context, gateway, process = SparkContext._active_spark_context, SparkContext._gateway, java()
    if context is not None:
        if process is not None and process.poll() is not None:
            context._jsc = None  # there is no one to tell
        context.stop()
    SparkSession._instantiatedSession = SparkSession._activeSession = None
    SparkContext._gateway = SparkContext._jvm = None
    if gateway is not None and process is not None:
        gateway.shutdown()
    return process


def has_ended(session: SparkSession) -> bool:
    """Whether a session, or its Java, has ended."""
    context = session.sparkContext
    try:
        return context._jsc is None or bool(context._jsc.sc().isStopped())
    except (Py4JError, OSError):  # there is no Java any more that could answer
        return True


def java_message(error: Py4JJavaError) -> str:
    """Java's message of an error, without the stack trace."""
    return str(error.java_exception.getMessage() or error.java_exception.toString())


def _jvm(session: SparkSession) -> Any:
    return session._jvm


def prepare(session: SparkSession) -> None:
    """Silence noisy loggers, and cache frequent lookups."""
    log4j = _jvm(session).org.apache.logging.log4j
    for name in NOISY:
        log4j.core.config.Configurator.setLevel(name, log4j.Level.OFF)
    for name in OFTEN_ASKED:
        setattr(_jvm(session), name, getattr(_jvm(session), name))


def plan_of(frame: DataFrame) -> str:
    """Spark's plan of a frame: what ``DataFrame.explain`` prints."""
    explained = _jvm(frame.sparkSession).PythonSQLUtils.explainString(frame._jdf.queryExecution(), "formatted")
    return str(explained).strip()


def send_by_value(functions: Iterable[Callable[..., Any]]) -> None:
    """Pickle functions by value: workers cannot import their modules."""
    for module in modules_of(functions):
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]  # Spark's own copy


# --- statements ---


def functions(session: SparkSession) -> Mapping[str, tuple[str, str]]:
    """Spark's own functions by their names in lower case: each with its group and its expression class."""
    infos = _jvm(session).org.apache.spark.sql.api.python.PythonSQLUtils.listBuiltinFunctionInfos()
    return {
        str(info.getName()).lower(): (str(info.getGroup()), str(info.getClassName()).rpartition(".")[2])
        for info in infos
    }


def parsed(session: SparkSession, statement: str) -> list[tuple[JavaObject, str]]:
    """Parse a statement: its operators and expressions, each with the name of its class."""
    return list(_nodes(session._jsparkSession.sessionState().sqlParser().parsePlan(statement)))


def analyzed(frame: DataFrame) -> list[str]:
    """The class names of all operators and expressions of a frame, after names are resolved."""
    return [kind for _, kind in _nodes(frame._jdf.queryExecution().analyzed())]


def _nodes(plan: JavaObject) -> Iterator[tuple[JavaObject, str]]:
    """Every operator and expression of a plan, at any depth."""
    gateway, (tree, many, product) = SparkContext._gateway, TREES
    assert gateway is not None
    todo: list[Any] = [plan]
    while todo:
        node = todo.pop()
        if not isinstance(node, JavaObject):
            continue
        if is_instance_of(gateway, node, tree):
            yield node, str(node.getClass().getSimpleName())
        if is_instance_of(gateway, node, many):
            iterator = node.iterator()
            while iterator.hasNext():
                todo.append(iterator.next())
        elif is_instance_of(gateway, node, product):
            todo += [node.productElement(at) for at in range(node.productArity())]


def relation_name(node: JavaObject) -> str:
    """The table name of an ``UnresolvedRelation``."""
    return str(node.tableName()).strip("`")


def function_name(node: JavaObject) -> str:
    """The function name of an ``UnresolvedFunction``."""
    return ".".join(str(node.nameParts().apply(at)) for at in range(node.nameParts().length()))


def names_of_with(node: JavaObject) -> list[str]:
    """The names that an ``UnresolvedWith`` (a WITH clause) defines."""
    return [str(node.cteRelations().apply(at)._1()) for at in range(node.cteRelations().length())]
