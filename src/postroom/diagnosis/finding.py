"""What an examination finds: severity, subject, place, and the command that helps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from postroom.limits import FINDINGS_MAX
from postroom.rules.language.definitions import Program
from postroom.stations.places.network import Network
from postroom.store import shown
from postroom.store.kernel.base import Store


class Severity(StrEnum):
    """How bad it is."""

    OK = "ok"
    NOTE = "note"  # someone meant it, or it mends itself
    WARNING = "warning"  # something waits for a person
    WRONG = "wrong"  # something does not work, or is lost

    @property
    def is_ok(self) -> bool:
        """Whether there is nothing to say."""
        return self is Severity.OK

    @property
    def is_wrong(self) -> bool:
        """Whether something does not work, or is lost."""
        return self is Severity.WRONG

    @property
    def is_problem(self) -> bool:
        """Whether somebody has to do something."""
        return self in (Severity.WARNING, Severity.WRONG)


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one check."""

    level: Severity
    check: str
    what: str
    where: str = ""
    do: str = ""

    def as_dict(self) -> dict[str, str]:
        return {
            "severity": self.level,
            "check": self.check,
            "finding": self.what,
            "concerns": self.where,
            "do": self.do,
        }


@dataclass(frozen=True)
class Case:
    """An open room, with what the checks read of it."""

    store: Store
    network: Network
    program: Callable[[], Program]  # of the rules in force
    lags: Callable[[], Mapping[str, int]]  # messages that wait for an engine, by who is to work on them
    deep: bool  # read everything, however long it takes

    @property
    def where(self) -> str:
        """Its URL without passwords."""
        return shown(self.network.url)


@dataclass(frozen=True)
class Check:
    """A named check; one without findings reports ``fine``."""

    name: str
    fine: str
    look: Callable[[Case], Iterator[Told]]

    def findings(self, case: Case) -> list[Finding]:
        remarks = [Finding(level, self.name, *texts) for level, *texts in self.look(case)]
        if not remarks:
            return [Finding(Severity.OK, self.name, self.fine)]
        remarks.sort(key=lambda finding: -list(Severity).index(finding.level))  # so that the worst is told
        more = len(remarks) - FINDINGS_MAX
        return (
            remarks if more <= 0 else [*remarks[:FINDINGS_MAX], Finding(Severity.NOTE, self.name, f"and {more} more")]
        )


#: A level, what is so, where it is, and what to do.
Told = tuple[Severity, str, str, str]


def ok(what: str, where: str = "") -> Told:
    return Severity.OK, what, where, ""


def note(what: str, where: str, do: str = "") -> Told:
    return Severity.NOTE, what, where, do


def warning(what: str, where: str, do: str) -> Told:
    return Severity.WARNING, what, where, do


def wrong(what: str, where: str, do: str) -> Told:
    return Severity.WRONG, what, where, do
