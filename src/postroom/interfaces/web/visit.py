"""A visit to a page: the user, the request, and the user's rights."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, TypeVar

from postroom.errors import EntryInvalid, MessageGone, MessageUnknown, NodeDown, PostroomError
from postroom.interfaces.http.access import Caller, Callers
from postroom.interfaces.http.contract.operation import Need
from postroom.interfaces.http.handling import requests
from postroom.interfaces.web import sessions
from postroom.interfaces.web.addresses import ROOT, address, pairs
from postroom.interfaces.web.asking import Asking, Askings
from postroom.interfaces.web.page import Notice, Page, Undo
from postroom.interfaces.web.wording import told
from postroom.limits import DESK_ROWS, UNDO_LOOKS_MAX
from postroom.model.message import Message
from postroom.model.progress import OnProgress
from postroom.room import Postroom
from postroom.room.identity import acting_with
from postroom.stations.station import Station

Scope = Mapping[str, Any]
THEMES = ("light", "dark")
_ADDRESS = re.compile(r"[!#-\[\]-~]{1,4000}")  # without blanks, ends of lines, quotes and backslashes


class Asked:
    """One request of a browser."""

    def __init__(self, scope: Scope, path: str) -> None:
        self.method: str = scope["method"]
        self.path = path.removeprefix(ROOT) or "/"
        self.base = scope.get("root_path", "") + ROOT
        self.scheme: str = scope.get("scheme", "http")
        self.is_safe = self.scheme == "https"
        self.head = requests.head(scope)
        self.session = sessions.session_of(self.head, self.is_safe)
        self.query = dict(pairs(scope["query_string"], "query"))
        self.address: str = (scope.get("client") or ("local",))[0]
        theme = sessions.cookies(self.head).get("postroom-theme")
        self.theme = theme if theme in THEMES else None
        self.said: list[tuple[str, str]] = []

    def to(self, path: str, **query: Any) -> str:
        return address(self.base, path, {}, query)

    def back(self, there: str) -> str:
        """The page that the user came from if it is one of these; else the first of them."""
        is_ours = there.startswith(self.base + "/") and _ADDRESS.fullmatch(there) is not None
        return there if is_ours else self.to("/")


T = TypeVar("T")


class Faults(dict[str, str]):
    """What does not fit, by field; nothing for the others."""

    def __missing__(self, name: str) -> None:
        return None


@dataclass(frozen=True)
class Part(Generic[T]):
    """A page of rows, and where the others are."""

    rows: Sequence[T]
    before: int  # rows that come before these
    total: int
    previous: str | None  # addresses
    next: str | None

    @property
    def last(self) -> int:
        return self.before + len(self.rows)


@dataclass
class Visit:
    """What a page gets: ``room`` acts as the user."""

    caller: Caller
    callers: Callers
    page: Page[Visit]
    askings: Askings
    base: str  # the address below which the pages are
    names: Mapping[str, str]  # in the path
    query: Mapping[str, str]
    said: Sequence[tuple[str, str]] = ()  # the fields of a form that was sent
    notice: Notice | None = None  # of what was done before
    problem: PostroomError | None = None  # why what was asked for was not done
    theme: str | None = None
    is_again: bool = False  # the script looks how far something is, and begins nothing
    seen: int = 0  # the newest number of the journal, before the page was made
    others: Sequence[Page[Visit]] = field(default=(), repr=False)

    @property
    def room(self) -> Postroom:
        return self.caller.room

    @property
    def user(self) -> str:
        return self.caller.name

    # --- what was sent ---

    @cached_property
    def form(self) -> dict[str, str]:
        """The submitted fields by name; the last one if repeated."""
        return dict(self.said)

    def all(self, name: str) -> list[str]:
        """All submitted values of a name."""
        return [value for key, value in self.said if key == name]

    def needed(self, name: str, label: str | None = None) -> str:
        """A required field; its label is for the error."""
        value = self.form.get(name, "").strip()
        if not value:
            raise EntryInvalid(where=label or name, why="it is missing", name=name)
        return value

    def refused(self, *actions: str) -> tuple[Mapping[str, str], Faults]:
        """What was typed into a form if one of its actions was refused, and by field what does not fit."""
        if self.problem is None or self.form.get("do") not in actions:
            return {}, Faults()
        named = {*self.form} & {str(self.problem.facts.get(word)) for word in ("name", "where", "argument", "field")}
        why = str(self.problem.facts.get("why") or told(self.problem))
        return self.form, Faults(dict.fromkeys(named, f"{why[:1].upper()}{why[1:]}."))

    def number(self, name: str, usual: int, most: int, label: str | None = None) -> int:
        """An integer of the form or the query; its label is for the error."""
        text = self.form.get(name, self.query.get(name, "")).strip() or str(usual)
        if not (text.isascii() and text.isdigit() and 0 < len(text) < 10 and 1 <= int(text) <= most):
            raise EntryInvalid(where=label or name, why=f"a whole number from 1 to {most} is expected", name=name)
        return int(text)

    # --- what takes long ---

    def asked(self, about: Any, work: Callable[[OnProgress], Any]) -> Asking | None:
        """The background work that the address names, if it is the user's and has the same subject; else new work.

        The refresh script starts no work, or it would restart what was just stopped.
        """
        known = self.known(about)
        return known if known is not None or self.is_again else self.begun(about, work)

    def known(self, about: Any) -> Asking | None:
        """The background work that the address names, if it is the user's and has the same subject."""
        asking = self.askings.known(self.user, self.query.get("asked", ""))
        return asking if asking is not None and asking.about == about else None

    def begun(self, about: Any, work: Callable[[OnProgress], Any]) -> Asking:
        """Start background work as the user."""

        def done(progress: OnProgress) -> Any:
            with self.acting():
                return work(progress)

        return self.askings.begin(self.user, about, done)

    @contextmanager
    def acting(self) -> Iterator[None]:
        """In this block, the thread acts as the user, with the user's rights."""
        with self.room.store.acting(self.user), acting_with(self.caller.identity):
            yield

    # --- rights ---

    def may(self, verb: str, *objects: str) -> bool:
        """Whether the user has a right, for an object by any of its names."""
        return self.caller.identity.why_not(verb, *objects) is None

    def require(self, right: str, of: str | None, names: Mapping[str, Any]) -> None:
        """Raise unless the user has a right, by the same rules as the server's operations."""
        self.callers.require(self.caller, Need(right, of), names)

    def may_follow(self, key: str) -> bool:
        """Whether the user may look into all places where a message has been."""
        try:
            self.require("look", "key", {"key": key})
        except PostroomError:
            return False
        return True

    @cached_property
    def stations(self) -> list[str]:
        """The stations of the user."""
        return [name for name in sorted(self.room.stations.all()) if self.may("work", name)]

    @cached_property
    def at_station(self) -> str | None:
        """The station of this page, or the user's first one."""
        named = self.names.get("station") or self.query.get("station")
        return named if named in self.stations else next(iter(self.stations), None)

    @cached_property
    def station(self) -> Station:
        """The station in the path; the right was checked."""
        return self.room.stations.admitted(self.names["station"])

    # --- messages ---

    @cached_property
    def undo(self) -> Undo | None:
        """The way back from what was done before, as long as it is one."""
        undo = None if self.notice is None else self.notice.undo
        if undo is None:
            return None
        places = list(undo.places.items())[:UNDO_LOOKS_MAX]
        return undo if all(self.is_at(key, place) for key, place in places) else None

    def is_at(self, key: str, place: str) -> bool:
        """Whether a message is known to be at a place."""
        try:
            return self.place(key) == place
        except (MessageUnknown, NodeDown):  # forgotten, or nobody can say where it is
            return False

    def place(self, key: str) -> str | None:
        """Where a message is; None if it was processed, though it may be kept where it was."""
        place = self.room.journal.locate(key)
        message = None if place is None else self.message(key)
        return None if message is not None and message.processed is not None else place

    def message(self, key: str, edition: int | None = None) -> Message | None:
        """A message or an earlier edition; None if it is no longer stored."""
        try:
            return self.room.journal.show(key, edition)
        except MessageGone:
            return None

    # --- addresses ---

    def address(self, path: str, names: Mapping[str, Any] | None = None, /, **query: Any) -> str:
        """The address of a page: ``visit.address("/desk/{station}", {"station": "Ann"}, type="CLAIM")``."""
        return address(self.base, path, names or {}, query)

    def address_of(self, page: Page[Visit]) -> str | None:
        """The address of a page in the navigation, if the user may open it."""
        if "{station}" in page.path:
            station = self.at_station
            return None if station is None else self.address(page.path, {"station": station})
        if "{" in page.path or (page.right is not None and not self.may(page.right, "*")):
            return None
        return self.address(page.path)

    def here(self, /, **query: Any) -> str:
        """The address of this page with another query."""
        return address(self.base, self.page.path.replace("...", ""), self.names, query)

    def again(self, /, **query: Any) -> str:
        """The address of this page with its query, partly replaced."""
        return self.here(**{**self.query, **query})

    def part(self, name: str, rows: Sequence[T], at: int = 0) -> Part[T]:
        """The rows of a list from the number that the address has for ``name``, else those around the row ``at``."""
        most = DESK_ROWS
        before = self.number(name, 1, 999_999_999) - 1 if self.query.get(name) else at // most * most
        before = min(before, max(len(rows) - 1, 0) // most * most)
        shown, after = rows[before : before + most], before + most
        return Part(
            shown,
            before,
            len(rows),
            self.again(**{name: max(before - most, 0) + 1}) if before else None,
            self.again(**{name: after + 1}) if after < len(rows) else None,
        )
