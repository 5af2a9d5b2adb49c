"""What a step must get right, case by case; each is run by the engine and by the oracle, in steps of several sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from postroom.limits import TASK_ROUNDS_MAX
from postroom.rules.evaluation import evaluate

from .differential import Pair
from .programs import Input

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Play = Callable[..., Pair]


@pytest.fixture(params=[1, 2, 5, 100], ids="steps of {}".format)
def play(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Play]:
    """Run a program over inputs (queue, body) and compare the two ends."""
    yield from _player(tmp_path, request.param)


@pytest.fixture
def play_at_once(tmp_path: Path) -> Iterator[Play]:
    """The same in steps that take all there is."""
    yield from _player(tmp_path, 100)


def _player(folder: Path, size: int) -> Iterator[Play]:
    pairs: list[Pair] = []

    def run(program: str, *inputs: tuple[str, str], split: int = 0, formats: str = "xml") -> Pair:
        place = folder / str(len(pairs))
        place.mkdir()
        pair = Pair(place, program)
        pairs.append(pair)
        for queue, body in inputs:
            pair.send(Input(queue, body, formats))
        pair.run(size, Random(split), most=1_000)
        pair.compare()
        return pair

    yield run
    for pair in pairs:
        pair.close()


def bodies(pair: Pair, queue: str) -> list[str]:
    found = pair.room.store.read(lambda tx: tx.slices.queue(queue))
    return [each.body for each in found]


def codes(pair: Pair, queue: str) -> list[Any]:
    """Code and rule of the errors in a queue."""
    return [
        (body.partition("<code>")[2].partition("</code>")[0], body.partition("<rule>")[2].partition("</rule>")[0])
        for body in bodies(pair, queue)
    ]


def keyed(*keys: str) -> list[tuple[str, str]]:
    return [("in", f"<m>{''.join(f'<k>{key}</k>' for key in each)}</m>") for each in keys]


QUEUES = """
create queue in kind basic mode persistent
create queue out kind basic mode persistent
create queue errors kind basic mode persistent
"""
SLICED = f"""{QUEUES}
create property sort as xs:string queue in, out value (//k)[1]
create slicing group on sort
"""


# --- slices ------------------------------------------------------------------------------------------------------


def test_messages_of_one_slice_see_each_other_and_what_each_has_made(play: Play) -> None:
    pair = play(
        f"""{SLICED}
        create rule count for group if (/m) then do enqueue <c>{{//k}}<n>{{count(qs:slice())}}</n></c> into out""",
        *keyed("a", "b", "a", "a"),
    )
    assert bodies(pair, "out") == [
        f"<c><k>{key}</k><n>{count}</n></c>" for key, count in [("a", 3), ("b", 1), ("a", 4), ("a", 5)]
    ]


def test_thirty_messages_of_one_slice_count_up(play: Play) -> None:
    pair = play(
        f"""{SLICED}
        create rule count for group if (/m) then do enqueue <c>{{//k}}<n>{{count(qs:slice()/c)}}</n></c> into out""",
        *keyed(*"a" * 30),
    )
    assert bodies(pair, "out") == [f"<c><k>a</k><n>{count}</n></c>" for count in range(30)]


def test_a_chain_that_no_task_can_settle_is_done_in_several_steps(play_at_once: Play) -> None:
    chain = TASK_ROUNDS_MAX + 10
    pair = play_at_once(
        f"""{SLICED}
        create rule odd for group if (/m and count(qs:slice()/c) mod 3 = 0) then do enqueue <c>{{//k}}</c> into out
        create rule even for group if (/m and count(qs:slice()/c) mod 3 = 1) then
            (do enqueue <c>{{//k}}</c> into out, do enqueue <c>{{//k}}</c> into out)""",
        *keyed(*"a" * chain),
    )
    assert len(bodies(pair, "out")) == 3 * chain // 2


def test_an_answer_to_what_did_not_settle_is_not_taken_for_settled(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fifth message saw what the fourth seemed to do when the task gave up, and the fourth then did nothing."""
    monkeypatch.setattr(evaluate, "TASK_ROUNDS_MAX", 3)
    queues = "\n".join(f"create queue {name} kind basic mode persistent" for name in "abcdestup")
    for split in range(8):
        pair = play(
            f"""{QUEUES} {queues}
            create rule a for a if (true()) then do enqueue <s/> into s
            create rule b for b if (qs:queue("s")) then do enqueue <t/> into t
            create rule c for c if (qs:queue("t")) then do enqueue <u/> into u
            create rule d for d if (not(qs:queue("u"))) then do enqueue <p/> into p
            create rule e for e if (qs:queue("p")) then do enqueue <no/> into out else do enqueue <yes/> into out""",
            *((queue, "<m/>") for queue in "abcde"),
            split=split,
        )
        assert bodies(pair, "out") == ["<yes/>"]


def test_enqueue_then_reset_loses_the_new_message_and_reset_then_enqueue_keeps_it(play: Play) -> None:
    program = f"""{SLICED}
        create rule swap for group if (/m) then ({{}})
        create rule see for in if (true()) then do enqueue <seen/> into errors"""
    new, reset = "do enqueue <c>{//k}</c> into out", "do reset"
    lost = play(program.replace("{}", f"{new}, {reset}"), *keyed("a", "a", "b"))
    assert lost.oracle.slices == {}
    kept = play(program.replace("{}", f"{reset}, {new}"), *keyed("a", "a", "b"))
    assert [len(members) for members in kept.oracle.slices.values()] == [1, 1]


def test_a_reset_of_another_slice_is_seen_by_its_later_messages(play: Play) -> None:
    pair = play(
        f"""{SLICED}
        create rule clear for group if (//clear) then do reset group key string(//clear)
        create rule count for group if (/m) then do enqueue <n>{{count(qs:slice())}}</n> into errors""",
        *keyed("a", "a"),
        ("in", "<m><k>b</k><clear>a</clear></m>"),
        *keyed("a", "b"),
    )
    assert bodies(pair, "errors") == [f"<n>{n}</n>" for n in (3, 3, 2, 0, 2)]


# --- queues ------------------------------------------------------------------------------------------------------


def test_a_reader_of_one_queue_sees_what_a_writer_in_another_has_put_before_it(play: Play) -> None:
    pair = play(
        f"""{QUEUES}
        create queue other kind basic mode persistent
        create rule write for in if (true()) then do enqueue <w/> into out
        create rule read for other if (true()) then do enqueue <n>{{count(qs:queue("out"))}}</n> into errors""",
        ("in", "<m/>"),
        ("other", "<m/>"),
        ("in", "<m/>"),
        ("in", "<m/>"),
        ("other", "<m/>"),
    )
    assert bodies(pair, "errors") == ["<n>1</n>", "<n>3</n>"]


def test_readers_and_writers_of_a_whole_queue_take_turns(play: Play) -> None:
    pair = play(
        f"""{QUEUES}
        create rule both for in if (count(qs:queue("out")) mod 2 = 0) then do enqueue <w/> into out
            else (do enqueue <x/> into out, do enqueue <x/> into out)""",
        *keyed(*"abcdefgh"),
    )
    assert "".join(body[1] for body in bodies(pair, "out")) == "wxxxxxxxxxxxxxxx"[:1] + "xx" * 7


def test_the_higher_priority_goes_first_also_among_new_messages(play: Play) -> None:
    pair = play(
        """
        create queue low kind basic mode persistent priority -1
        create queue middle kind basic mode persistent
        create queue high kind basic mode persistent priority 7
        create queue out kind basic mode persistent
        create rule l for low if (true()) then (do enqueue <l/> into out, do enqueue <m/> into high)
        create rule m for middle if (true()) then do enqueue <m/> into out
        create rule h for high if (true()) then do enqueue <h/> into out""",
        ("low", "<m/>"),
        ("low", "<m/>"),
        ("middle", "<m/>"),
        ("high", "<m/>"),
    )
    assert bodies(pair, "out")[:2] == ["<h/>", "<m/>"]


# --- indexes -----------------------------------------------------------------------------------------------------

FOUND = 'do enqueue <f>{qs:queue("out")[//k = qs:message()//k] ! string(/*/n)}</f> into errors'


def test_what_an_earlier_message_of_the_step_has_put_is_found_through_an_index(play: Play) -> None:
    pair = play(
        f"""{QUEUES}
        create rule find for in if (true()) then ({FOUND}, do enqueue <c>{{//k}}<n>{{string(//k)}}</n></c> into out)""",
        *keyed("a", "b", "a", "b", "a"),
    )
    assert bodies(pair, "errors") == ["<f/>", "<f/>", "<f>a</f>", "<f>b</f>", "<f>a a</f>"]


def test_an_index_with_several_values_gives_each_message_once_and_in_the_order_of_arrival(play: Play) -> None:
    pair = play(
        f"{QUEUES} create rule find for in if (true()) then {FOUND}",
        *[("out", f"<c>{''.join(f'<k>{k}</k>' for k in ks)}<n>{n}</n></c>") for n, ks in enumerate(["b", "a", "ab"])],
        *keyed("ab", "ba", "c"),
    )
    assert bodies(pair, "errors") == ["<f>0 1 2</f>", "<f>0 1 2</f>", "<f/>"]


def test_new_messages_that_two_values_lead_to_are_told_apart(play: Play) -> None:
    """Equal ones are two, and one that both values lead to is one."""
    pair = play(
        f"""{QUEUES}
        create rule put for in if (//put) then for $c in //c return do enqueue $c into out
        create rule find for in if (not(//put)) then {FOUND}""",
        ("in", "<m><put/><c><k>b</k><k>x</k><n>1</n></c><c><k>a</k><k>b</k><n>2</n></c><c><k>a</k><n>3</n></c></m>"),
        ("in", "<m><put/><c><k>a</k><k>b</k><n>2</n></c><c><k>b</k><n>4</n></c></m>"),
        *keyed("ab", "ba", "a", "x"),
    )
    assert bodies(pair, "errors") == ["<f>1 2 3 2 4</f>", "<f>1 2 3 2 4</f>", "<f>2 3 2</f>", "<f>1</f>"]


@pytest.mark.parametrize(
    ("predicate", "found"),
    [
        ('//k = "a"', "0 2"),
        ('//k = "a" and //x', "2"),
        ('//k = "a" or //x', "0 1 2"),
        ('//x or //k = "a"', "0 1 2"),
        ('//k = "a" and //y or //x', "1 2"),
        ('//x and //k = "b" or //k = "a"', "0 1 2"),
        ("//k = qs:message()//k or //x", "0 1 2"),
        ('position() = 3 and //k = "a"', "2"),
        ('//k = "a" and position() = 3', "2"),
        ('//k = "a" and last() = 3', "0 2"),
        ("//k = qs:message()//k and position() gt 1", "2"),
    ],
)
def test_a_predicate_finds_the_same_with_an_index_or_without(play_at_once: Play, predicate: str, found: str) -> None:
    find = f'do enqueue <f>{{qs:queue("out")[{predicate}] ! string(//n)}}</f> into errors'
    pair = play_at_once(
        f"{QUEUES} create rule find for in if (true()) then {find}",
        ("out", "<c><k>a</k><n>0</n></c>"),
        ("out", "<c><k>b</k><x/><n>1</n></c>"),
        ("out", "<c><k>a</k><x/><n>2</n></c>"),
        *keyed("a"),
    )
    assert bodies(pair, "errors") == [f"<f>{found}</f>"]


# --- errors ------------------------------------------------------------------------------------------------------


def test_a_failing_message_in_the_middle_leads_to_an_error_and_nothing_else(play: Play) -> None:
    pair = play(
        f"""{SLICED}
        create rule count for group errorqueue errors
        if (/m) then (do enqueue <c>{{//k}}<n>{{count(qs:slice())}}</n></c> into out, do reset group key string(//k))
        create rule errors for group errorqueue errors
        if (/m) then do enqueue <e>{{//k}}<n>{{count(qs:queue("errors"))}}</n></e> into out""",
        *keyed("a", "aa", "a", "a"),
    )
    assert codes(pair, "errors") == [("XPTY0004", "count")]
    assert [body for body in bodies(pair, "out") if body.startswith("<c")] == [
        f"<c><k>a</k><n>{n}</n></c>" for n in (4, 1, 1)
    ]
    counts = [body for body in bodies(pair, "out") if body.startswith("<e")]
    assert counts == [f"<e><k>a</k><n>{n}</n></e>" for n in (0, 1, 1)]


@pytest.mark.parametrize(
    ("action", "code"),
    [
        ("do enqueue (<a/>, <b/>) into out", "PR0001"),
        ("do enqueue () into out", "PR0001"),
        ("do enqueue //@none into out", "PR0001"),
        ('do enqueue document { "x", <a/> } into out', "PR0001"),
        ("do enqueue document { <a/>, <b/> } into out", "PR0001"),
        ("(do enqueue <a/> into out, do enqueue <b>{error()}</b> into out)", "FOER0000"),
        ('do enqueue <a><b/>{xs:integer("x")}</a> into out', "FORG0001"),
        ('(do enqueue <a/> into out, do reset number key "x")', "FORG0001"),
        ('do enqueue <a/> into out with whole value "x"', "FORG0001"),
        ("do enqueue <a/> into out with whole value (1, 2)", "PR0002"),
        ("do enqueue <a><k>x</k></a> into out", "FORG0001"),
        ("for $i in 3 to 7 return do enqueue <a>{1 idiv (5 - $i)}</a> into out", "FOAR0001"),
        ("(do enqueue <a/> into out, do enqueue text { error() } into out)", "FOER0000"),
    ],
)
def test_an_error_is_told_with_its_own_code_and_rule_however_much_was_done(
    play_at_once: Play, action: str, code: str
) -> None:
    pair = play_at_once(
        f"""{QUEUES}
        create property whole as xs:integer queue out value //k
        create slicing number on whole
        create rule fine for in if (true()) then do enqueue <fine/> into out
        create rule bad for in errorqueue errors if (//bad) then {action}
        create rule good for in if (true()) then do enqueue <good/> into out""",
        ("in", "<m/>"),
        ("in", "<m><bad/></m>"),
        ("in", "<m/>"),
    )
    found = codes(pair, "errors")
    assert [(said.rpartition(":")[2], rule) for said, rule in found] == [(code, "bad")]
    assert bodies(pair, "out") == ["<fine/>", "<good/>"] * 2


def test_the_first_rule_that_fails_is_the_one_that_is_told(play_at_once: Play) -> None:
    pair = play_at_once(
        f"""{QUEUES}
        create queue later kind echo mode persistent
        create rule first for in errorqueue errors
        if (true()) then do enqueue <a/> into later with target value "out" with timeout value "soon"
        create rule second for in errorqueue out if (true()) then do enqueue <a>{{error()}}</a> into out""",
        ("in", "<m/>"),
    )
    assert codes(pair, "errors") == [("PR0004", "first")]


# --- timers ------------------------------------------------------------------------------------------------------


def test_echoes_come_back_by_their_time_and_before_everything_else(play: Play) -> None:
    pair = play(
        f"""{QUEUES}
        create queue later kind echo mode persistent
        create rule wait for in if (//wait) then
            for $w in //wait return do enqueue <w>{{string($w)}}</w> into later
            with target value "in" with timeout value xs:integer($w) with kept value "yes"
        create rule note for in if (/w) then do enqueue <n>{{/w/text()}}{{qs:property("kept")}}</n> into out""",
        ("in", "<m><wait>5</wait><wait>0</wait></m>"),
        ("in", "<m><wait>2</wait><wait>0</wait><wait>5</wait></m>"),
        ("in", "<m/>"),
    )
    assert bodies(pair, "out") == [f"<n>{seconds}yes</n>" for seconds in (0, 0, 2, 5, 5)]


# --- what messages say -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["a & b", "&lt;", "one\ntwo\ttab", "\x85 \x80 \x9f", "]]>", "\u2028", "  ", '"'])
def test_text_comes_through_a_rule_and_a_property_as_it_was(play_at_once: Play, text: str) -> None:
    pair = play_at_once(
        f"""{QUEUES}
        create property said as xs:string queue out value string(.)
        create slicing words on said
        create rule pass for in if (true()) then do enqueue string(.) into out""",
        ("in", text),
        formats="text",
    )
    assert bodies(pair, "out") == [text]
    assert [value for _, value in pair.oracle.slices] == [text]


def test_a_truth_value_and_a_number_are_kept_apart(play_at_once: Play) -> None:
    pair = play_at_once(
        f"""{QUEUES}
        create rule say for in if (true()) then
            (do enqueue <a/> into out with u value 1, do enqueue <a/> into out with u value true())
        create rule ask for out if (true()) then do enqueue <u>{{qs:property("u")}}</u> into errors""",
        ("in", "<m/>"),
    )
    assert bodies(pair, "errors") == ["<u>1</u>", "<u>true</u>"]


def test_a_message_from_outside_knows_its_sender_in_every_queue(play_at_once: Play) -> None:
    pair = play_at_once(
        f"""{QUEUES}
        create rule say for in if (true()) then do enqueue <s>{{qs:property("sender")}}</s> into out""",
        ("in", "<m/>"),
    )
    assert bodies(pair, "out") == ["<s>sender</s>"]


# --- the public face ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 7, 100])
def test_a_room_run_until_idle_on_spark_ends_as_the_oracle_says(spark: SparkSession, tmp_path: Path, size: int) -> None:
    pair = Pair(
        tmp_path,
        f"""{SLICED}
        create rule count for group errorqueue errors
        if (/m) then (do enqueue <c>{{//k}}<n>{{count(qs:slice())}}</n></c> into out, do reset group key string(//k))
        create rule find for in if (true()) then {FOUND}""",
    )
    for queue, body in keyed("a", "b", "aa", "a", "c", "b", "ab", "a"):
        pair.send(Input(queue, body, "xml"))
    pair.give_back()
    assert pair.room.run_until_idle(step_messages=size, master=spark.sparkContext.master) > 8
    while pair.oracle.step(size):
        pass
    pair.compare()
    pair.close()
