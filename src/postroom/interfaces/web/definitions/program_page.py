"""Programs: edit, check, try, compare and load definition files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import partial
from pathlib import Path
from typing import Any

from postroom.errors import DefinitionError, EntryInvalid, ResourceUnknown
from postroom.interfaces.http.contract.kinds import FILES
from postroom.interfaces.web.asking import Asking
from postroom.interfaces.web.definitions.source_view import pieces
from postroom.interfaces.web.page import Again, Goto, Page
from postroom.interfaces.web.visit import Visit
from postroom.limits import COMPARED_LINES_MAX, PAGE_ROWS, TRIED_MESSAGES_MAX
from postroom.model.definitions import Loaded, Problem
from postroom.model.paths import reading_only
from postroom.model.progress import OnProgress
from postroom.room import Postroom

PATH = "/programs"
#: What a load does with definitions that its text leaves out, and how they are removed.
_LEFT_OUT = {
    ".demaq": "What the text of a module leaves out is removed from the module; you are asked first.",
    ".flow": "What the text of a domain leaves out is removed from it; you are asked first. "
    "What was added at run time stays.",
    ".qdl": "The text describes the whole tree: a queue that it leaves out is removed; you are asked first.",
    ".form": "A load of forms, procedures and counters adds and changes, and removes nothing that the text leaves out. "
    "On the machine of the room, “postroom procedure remove NAME” and “postroom counter remove NAME” do; a type stays.",
}


@dataclass(frozen=True)
class Draft:
    """A proposed file."""

    name: str
    text: str


@dataclass(frozen=True)
class Difference:
    """A message, with what definitions in force and proposed ones do with it."""

    key: str
    queue: str
    before: Sequence[Mapping[str, Any]]
    after: Sequence[Mapping[str, Any]]

    @property
    def differs(self) -> bool:
        return self.before != self.after


@dataclass(frozen=True)
class Tried:
    """The result of a dry run."""

    several: Sequence[Difference]
    is_all: bool

    def __len__(self) -> int:
        return len(self.several)

    @property
    def different(self) -> list[Difference]:
        return [difference for difference in self.several if difference.differs]


def show(visit: Visit) -> Mapping[str, Any]:
    asking = visit.askings.known(visit.user, visit.query.get("asked", ""))
    if visit.form or asking is None or not isinstance(asking.about, Draft):
        return _context(visit, _proposed(visit))
    if not asking.wait():
        return _context(visit, asking.about) | {"asking": asking}
    try:
        return _context(visit, asking.about, tried=asking.result())
    except DefinitionError as error:  # it says so where the text is
        return _context(visit, asking.about, problems=error.facts.get("problems", ()))


def _proposed(visit: Visit) -> Draft:
    """The submitted text, or the one in force."""
    if visit.form:
        return Draft(visit.form.get("name", "").strip(), visit.form.get("text", "").replace("\r\n", "\n"))
    name, files = visit.query.get("file", "").strip(), file_texts(visit.room)
    if name and name not in files:
        raise ResourceUnknown(method="GET", path=f"the program {name[:100]}")
    return Draft(name, files.get(name, ""))


def _context(
    visit: Visit, draft: Draft, problems: Sequence[Problem] = (), tried: Tried | None = None
) -> dict[str, Any]:
    files = file_texts(visit.room)
    name, text, in_force = draft.name, draft.text, files.get(draft.name, "")
    marks = {problem.position.line: problem.what for problem in problems}
    numbered = enumerate(text.splitlines(), 1)
    return {
        "files": list(files),
        "name": name,
        "is_new": name not in files,
        "text": text,
        "lines": [(number, pieces(line), marks.get(number)) for number, line in numbered],
        "problems": [
            (problem.position.line, problem.position.column, problem.what, problem.rule) for problem in problems
        ],
        "changes": list(changes(in_force, text)) if text != in_force and name in files else [],
        "versions": visit.room.definitions.versions(PAGE_ROWS) if name in files else [],
        "compared": _compared(visit, name, in_force),
        "asking": None,
        "tried": tried,
        "removes": (),
        "drops": _drops(visit),
        "may_load": visit.may("load", "*"),
        "definitions": visit.room.definitions.catalog() if not name else [],
        "left_out": {name: said for name, said in _LEFT_OUT.items() if draft.name.endswith(name)} or _LEFT_OUT,
    }


def _drops(visit: Visit) -> bool:
    return visit.form.get("drop") == "yes"


def file_texts(room: Postroom, version: int | None = None) -> dict[str, str]:
    """The definitions in force, or of a version, as files."""
    return {name: text.decode(errors="replace") for name, text in room.definitions.files(version).items()}


def _compared(visit: Visit, name: str, in_force: str) -> dict[str, Any] | None:
    """Two versions of a file side by side: the one in the address, and another or the one in force."""
    if "before" not in visit.query or not name:
        return None
    before, after = visit.number("before", 1, 10**8), visit.number("after", 10**8, 10**8)
    later = in_force if after == 10**8 else file_texts(visit.room, after).get(name, "")
    earlier = file_texts(visit.room, before).get(name, "")
    return {
        "before": before,
        "after": None if after == 10**8 else after,
        "changes": list(changes(earlier, later)),
        "is_same": earlier == later,
    }


def changes(before: str, after: str) -> Iterator[tuple[str, str, str]]:
    """A side-by-side diff: the kind of each line, its old and its new text."""
    old, new = before.splitlines(), after.splitlines()
    if len(old) + len(new) > COMPARED_LINES_MAX:
        yield "replace", f"{len(old)} lines", f"{len(new)} lines: too many to compare"
        return
    is_long = len(old) + len(new) > COMPARED_LINES_MAX // 10  # then lines that come often tell nothing
    for kind, first, last, begin, end in SequenceMatcher(None, old, new, autojunk=is_long).get_opcodes():
        for index in range(max(last - first, end - begin)):
            left = old[first + index] if first + index < last else ""
            right = new[begin + index] if begin + index < end else ""
            yield kind, left, right


# --- what its buttons do ---


def drafted(visit: Visit) -> Draft:
    """The submitted draft; raises for an invalid file name."""
    visit.needed("name")
    draft = _proposed(visit)
    FILES.checked("name", {draft.name: draft.text})
    return draft


@contextmanager
def written(room: Postroom, draft: Draft) -> Iterator[Path]:
    """A draft as a file, beside those in force, which it may refer to; no other file of this machine is read."""
    with reading_only({**file_texts(room), draft.name: draft.text}):
        yield Path(draft.name)


def check(visit: Visit) -> Again:
    """Check whether it could be loaded; changes nothing."""
    visit.require("load", None, {})
    draft = drafted(visit)
    try:
        with written(visit.room, draft) as file:
            visit.room.definitions.check(file)
    except DefinitionError as error:
        return _wrong(visit, draft, error)
    return Again(_context(visit, draft) | {"checked": True}, 200)


def _wrong(visit: Visit, draft: Draft, error: DefinitionError) -> Again:
    return Again(_context(visit, draft, problems_of(error)))


def problems_of(error: DefinitionError) -> Sequence[Problem]:
    """The problems of an error with their places; raises it again if it has none."""
    problems: Sequence[Problem] = error.facts.get("problems", ())
    if not problems:
        raise error
    return problems


def try_out(visit: Visit) -> Goto | Again:
    """A dry run on stored messages, with the differences; changes nothing.

    It runs in the background, like a query. It shows stored messages of all places.
    """
    visit.require("load", None, {})
    visit.require("look", None, {})
    draft, room = drafted(visit), visit.room
    try:
        with written(room, draft) as file:  # what cannot be loaded is told at once
            room.definitions.check(file)
    except DefinitionError as error:
        return _wrong(visit, draft, error)
    asking = visit.begun(draft, lambda progress: trial(room, draft, progress))
    return Goto(visit.here(file=draft.name, asked=asking.id))


def trial(room: Postroom, draft: Draft, progress: OnProgress) -> Tried:
    """Compare proposed definitions with those in force, message by message."""
    now = Draft(draft.name, file_texts(room).get(draft.name, ""))
    after = _done(room, draft, progress)
    before = _done(room, now, progress) if now.text else {}
    order = sorted({*before, *after}, key=lambda place: (place not in after, place))[:TRIED_MESSAGES_MAX]
    several = [Difference(*place[:2], before.get(place, ()), after.get(place, ())) for place in order]
    return Tried(several, max(len(before), len(after)) < TRIED_MESSAGES_MAX)


def _done(
    room: Postroom, draft: Draft, progress: OnProgress
) -> dict[tuple[str, str, int], Sequence[Mapping[str, Any]]]:
    """The actions by message and place; several working sets of one message are kept apart."""
    effects: dict[tuple[str, str, int], Sequence[Mapping[str, Any]]] = {}
    same: Counter[tuple[str, str]] = Counter()
    with written(room, draft) as file:
        for count, outcome in enumerate(room.definitions.try_out(file), 1):
            progress(count, 0)
            place = (outcome.key, outcome.queue)
            effects[(*place, same[place])] = outcome.as_dict()["actions"]
            same[place] += 1
            if count >= TRIED_MESSAGES_MAX:
                break
    return effects


def stop(visit: Visit) -> Again:
    """Stop the dry run; the text stays."""
    asking: Asking | None = visit.askings.known(visit.user, visit.query.get("asked", ""))
    if asking is None or not isinstance(asking.about, Draft):
        raise EntryInvalid(where="asked", why="nothing is tried under this number any more")
    visit.askings.stop(visit.user, asking.id)
    return Again(_context(visit, asking.about) | {"stopped": True}, 200)


class _Removes(Exception):
    """What a load would remove; it is asked for before it is done."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names


def _agree(agreed: frozenset[str], loaded: Loaded) -> None:
    """Raise for a removal without consent."""
    if not agreed.issuperset(loaded.removed):
        raise _Removes(loaded.removed)


def load(visit: Visit) -> Goto | Again:
    """Load what removes nothing; else say what it would remove."""
    return _load(visit, frozenset())


def load_and_remove(visit: Visit) -> Goto | Again:
    """Load what removes nothing else than what was said."""
    return _load(visit, frozenset(visit.all("removes")))


def _load(visit: Visit, agreed: frozenset[str]) -> Goto | Again:
    visit.require("load", None, {})
    draft = drafted(visit)
    try:
        with written(visit.room, draft) as file:
            loaded = visit.room.definitions.load(file, drop=_drops(visit), agree=partial(_agree, agreed))
    except DefinitionError as error:
        return _wrong(visit, draft, error)
    except _Removes as asked:
        return Again(_context(visit, draft) | {"removes": asked.names}, 409)
    words = {"added": loaded.added, "changed": loaded.changed, "kept": loaded.kept, "removed": loaded.removed}
    counts = ", ".join(f"{len(names)} {word}" for word, names in words.items())
    stays = " What the text leaves out stays." if draft.name.endswith(".form") else ""
    return Goto(visit.address(PATH), f"Version {loaded.version}: {counts}.{stays}")


PAGE = Page(
    PATH,
    "programs.html",
    show,
    "look",
    None,
    {"check": check, "try": try_out, "stop": stop, "load": load, "load-and-remove": load_and_remove},
    label="Programs",
    group="operators",
)
