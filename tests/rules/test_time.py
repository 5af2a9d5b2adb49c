"""Ten kilobytes of anything are read or refused within a second: nothing that reads definitions goes round for ever."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postroom.errors import PostroomError
from postroom.flows.language import reader as flow_language
from postroom.queues.tree import description
from postroom.room import Postroom
from postroom.rules.compilation import checks
from postroom.rules.compilation.compiler import compiled
from postroom.rules.language.definitions import Program
from postroom.rules.language.reader import parse
from postroom.stations import office as form_language

SIZE = 10_000
FRAMES = [
    "create queue a kind basic mode persistent create queue b kind basic mode persistent\n"
    "create rule r for a if (HERE) then do enqueue <x/> into b",
    "create queue a kind basic mode persistent create queue b kind basic mode persistent\n"
    "create rule r for a if (1) then HERE",
    "create queue a kind basic mode persistent create queue b kind basic mode persistent\n"
    "create property p as xs:string queue a value HERE create slicing s on p",
    "HERE",
]
PIECES = [
    *(
        'qs:queue("b")/n/text()',
        "//n/..",
        'qs:queue("b")/n/(a|b)',
        "let $q := qs:queue('b') return $q/order/total/number()",
    ),
    *(
        'qs:queue("b")[x="1"],',
        "$q[",
        "/n/",
        "[",
        "(",
        "{",
        "<a>",
        "<a b='{",
        "</a>",
        "1+",
        "-",
        "a ",
        "queue a value 1 ",
    ),
    *(
        "let $x := 1 return ",
        "for $x in //a group by $x ",
        "some $x in a satisfies ",
        "if (a) then ",
        "else ",
        "``[`{",
        "}`]``",
    ),
    *(
        "do enqueue <a/> into b, ",
        "do reset ",
        "typeswitch (a) case ",
        "(:",
        ":)",
        "'",
        '"',
        "&amp;",
        "Q{",
        "function($x) {",
    ),
    *(
        "create ",
        "create queue a ",
        "create rule r for a if (1) then do reset ",
        "create property p as xs:string queue a value ",
    ),
    *(
        "with p value 1 ",
        "compensate with ",
        "$a/b[c = $a] and ",
        "@a/",
        "::",
        "=>f()",
        "!",
        "?",
        "#",
        "%",
        "return ",
        "as element()+ ",
    ),
    *(
        "qs:queue('b')[a = 'x' and ",
        "qs:queue('b')//n[@m]/",
        "qs:slice()",
        "qs:property('p')",
        "é",
        "\U0001f600",
        "\t",
        "\\",
    ),
]


def spent(text: str) -> float:
    """The processor time that reading, checking and compiling takes, up to where Saxon begins."""
    began = time.process_time()
    with suppress(PostroomError):
        program = Program(parse(text, "f.demaq"))
        checks.check(program, frozenset())
        compiled(program, 1, "m")
    return time.process_time() - began


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("piece", PIECES)
def test_the_same_again_and_again_is_read_or_refused_within_a_second(frame: str, piece: str) -> None:
    assert spent(frame.replace("HERE", piece * (SIZE // len(piece)))) < 1


@pytest.mark.parametrize("frame", FRAMES[:2])
@pytest.mark.parametrize(
    "path", ['qs:queue("b")/n/text()', 'qs:queue("b")//n/..', 'qs:queue("b")/n/(a|b)', 'qs:queue("b")/n/number()']
)
def test_paths_that_no_index_answers_end(frame: str, path: str) -> None:
    """These went round for ever."""
    assert spent(frame.replace("HERE", f"let $q := {path} return ($q/order/total/number(), $q/text(), $q/..)")) < 1


TEXTS = st.lists(st.sampled_from(PIECES) | st.text(max_size=4), min_size=1, max_size=12).map("".join)


@settings(deadline=None, max_examples=150)
@given(st.sampled_from(FRAMES), TEXTS, TEXTS, st.integers(1, 60))
def test_any_mixture_is_read_or_refused_within_a_second(frame: str, before: str, again: str, times: int) -> None:
    assert spent(frame.replace("HERE", (before + again * times)[:SIZE])) < 1


@settings(deadline=None, max_examples=100)
@given(st.data())
def test_a_mutated_program_is_read_or_refused_within_a_second(data: st.DataObject) -> None:
    text = (Path(__file__).parents[2] / "docs/reference/rules.md").read_text().split("```demaq\n")[1].split("```")[0]
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text) - 1))
        end = min(len(text), start + data.draw(st.integers(0, 40)))
        text = text[:start] + data.draw(st.sampled_from(PIECES) | st.just(text[start:end] * 20)) + text[end:]
    assert spent(text[:SIZE]) < 1


OTHERS = {
    ".qdl": (
        "01 INPUT-QUEUE (A) 02 SUB-QUEUE-1 (B) 03 PASSWORD IS \" ' ( ) . , 99 \n - * COMMAND LINE".split(" "),
        description.parse,
    ),
    ".flow": (
        "domain space state table arc select transform merge from to where [ ] ( ) { } , : ; = < > \" ' 1 x".split(" "),
        flow_language.parse,
    ),
    ".form": (
        "form counter procedure sketch : | ___ + - # { } [ ] ( ) ? = \" ' \n x 1 when then".split(" "),
        form_language.read,
    ),
}


@pytest.mark.parametrize("language", list(OTHERS))
@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_other_languages_are_read_or_refused_within_a_second(language: str, data: st.DataObject) -> None:
    words, read = OTHERS[language]
    piece = " ".join(data.draw(st.lists(st.sampled_from(words), min_size=1, max_size=8)))
    text = (piece + data.draw(st.sampled_from([" ", "\n"]))) * (SIZE // (len(piece) + 1))
    began = time.process_time()
    with suppress(PostroomError):
        read(text, f"f{language}")
    assert time.process_time() - began < 1


LONG = "9" * SIZE
NUMBERS = [
    (".demaq", f"create queue a kind basic mode persistent priority {LONG}"),
    (".demaq", f"create queue a kind basic mode persistent priority -{LONG}"),
    (".demaq", FRAMES[0].replace("HERE", LONG)),
    (".qdl", f'01 INPUT-QUEUE (A) COMMAND LINE IS "x" TIMEOUT IS {LONG} SECONDS 99'),
    (".qdl", f"01 INPUT-QUEUE (A) ATTEMPTS IS {LONG} 99"),
    (".qdl", f"{LONG} INPUT-QUEUE (A) 99"),
    (".flow", f"domain d space A : [n: int] space B arc x : A -> B select [n: > {LONG}]"),
    (".flow", f"domain d space A : [f: float] space B arc x : A -> B select [f: > 1e{LONG}]"),
    (".flow", f"domain d space A : [n: int] space B arc x : A -> B collapse [n: n] over {LONG} events => [n: count()]"),
    (".form", f"procedure p at S\nprecondition x : T\ndestination d on x copy {LONG} leave"),
    (".form", f"procedure p at S\nprecondition x : T\ndestination d on x copy 0 ship S after {LONG} days"),
    (".form", f"procedure p at S\nprecondition x : T\naction y on x\nA: f({LONG})"),
]


@pytest.mark.parametrize(("language", "text"), NUMBERS, ids=range(len(NUMBERS)))
def test_a_number_of_ten_thousand_digits_is_read_or_refused_within_a_second(language: str, text: str) -> None:
    """Python reads no more than 4,300 digits; its own error is no refusal."""
    read = OTHERS[language][1] if language in OTHERS else parse
    began = time.process_time()
    with suppress(PostroomError):
        read(text, f"f{language}")
    assert time.process_time() - began < 1


@pytest.mark.parametrize(
    ("frame", "piece", "times"),
    [
        ("create property p{n} as xs:string queue b value ({many})", "//n/..", 1_200),
        ("create property p{n} as xs:string queue b value (1{many})", "|//n/..", 1_100),
        ("create rule r{n} for b if ({many}) then do enqueue <x/> into b", "//n/..", 1_300),
    ],
)
@pytest.mark.parametrize("several", [1, 4, 8])
def test_what_the_compiler_is_given_in_one_load_has_a_bound(
    room: Postroom, tmp_path: Path, frame: str, piece: str, times: int, several: int
) -> None:
    """Each expression alone was within its bound, and all of them took seconds."""
    some = [frame.format(n=n, many=piece * (times // several)) for n in range(several)]
    (tmp_path / "p.demaq").write_text("\n".join(["create queue b kind basic mode persistent", *some]))
    assert (tmp_path / "p.demaq").stat().st_size < 10_300
    (tmp_path / "q.demaq").write_text(
        "create queue q kind basic mode persistent create rule q for q if (/x) then do enqueue <x/> into q"
    )
    room.load(tmp_path / "q.demaq")  # the compiler's process is there
    began = spent_by_compilers()
    with suppress(PostroomError):
        room.load(tmp_path / "p.demaq")
    took = spent_by_compilers() - began
    assert took < 1


def spent_by_compilers() -> float:
    """The processor time of this process, and of those that compile for it."""
    mine = psutil.Process()
    times = [mine.cpu_times(), *(child.cpu_times() for child in mine.children(recursive=True))]
    return float(sum(time.user + time.system for time in times) + mine.cpu_times().children_user)
