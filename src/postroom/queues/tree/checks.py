"""The rules of a queue description (sections 2.3 to 2.5 of the Multics text), each a function of its own name.

The printed rule in an error, such as ``[level-skipped]``, is the function's name.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Sequence

from postroom.errors import ArgumentInvalid, DescriptionInvalid
from postroom.limits import (
    COMMAND_CHARS_MAX,
    COMMAND_SECONDS_MAX,
    HIERARCHY_ENTRIES_MAX,
    NAME_CHARS_MAX,
    PASSWORD_CHARS_MAX,
)
from postroom.model.definitions import Problem, refuse
from postroom.model.password import is_hash
from postroom.queues.tree.description import CLAUSE_LEVELS, Entry
from postroom.queues.tree.policy import of_words

Entries = Sequence[Entry]
Check = Callable[[Entries], Iterator[tuple[Entry, str]]]


def input_required(entries: Entries) -> Iterator[tuple[Entry, str]]:
    if entries and not any(entry.clause == "INPUT-QUEUE" for entry in entries):
        yield entries[0], "a description needs at least one 01 INPUT-QUEUE"


def clause_level(entries: Entries) -> Iterator[tuple[Entry, str]]:
    for entry in entries:
        level = CLAUSE_LEVELS[entry.clause]
        if entry.level != level:
            yield entry, f"{entry.clause} stands at level {level:02d}, not {entry.level:02d}"


def level_skipped(entries: Entries) -> Iterator[tuple[Entry, str]]:
    above = 0
    for entry in entries:
        if entry.level > above + 1:
            yield entry, f"level {entry.level:02d} needs a level {entry.level - 1:02d} directly above it"
        above = entry.level


def output_single(entries: Entries) -> Iterator[tuple[Entry, str]]:
    inside = ""
    for entry in entries:
        if entry.level == 1:
            inside = entry.clause
        elif inside == "OUTPUT-QUEUE":
            yield entry, f"an output queue has only the 01 level; {entry.name} cannot be below it"


def name_form(entries: Entries) -> Iterator[tuple[Entry, str]]:
    for entry in entries:
        if len(entry.name) > NAME_CHARS_MAX:
            yield (
                entry,
                f"the name {entry.name!r} has {len(entry.name)} characters; at most {NAME_CHARS_MAX} are allowed",
            )
        elif not re.fullmatch(r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?", entry.name):
            yield entry, f"the name {entry.name!r} must be letters, digits and inner hyphens"


def name_unique(entries: Entries) -> Iterator[tuple[Entry, str]]:
    seen: set[str] = set()
    for entry, path in zip(entries, paths(entries), strict=True):
        if path in seen:
            yield entry, f"{path.replace('/', ' ')} is defined twice"
        seen.add(path)


def password_form(entries: Entries) -> Iterator[tuple[Entry, str]]:
    for entry in entries:
        if entry.password is not None and not re.fullmatch(r"[A-Za-z0-9]+ *", entry.password):
            yield entry, f"the password of {entry.name} must be letters and digits, at least one"
        elif entry.password is not None and len(entry.password.rstrip()) > PASSWORD_CHARS_MAX:
            yield entry, f"the password of {entry.name} is longer than {PASSWORD_CHARS_MAX} characters"
        elif entry.password_hash is not None and not is_hash(entry.password_hash):
            yield entry, f"the password hash of {entry.name} is not a complete argon2id hash"


def command_form(entries: Entries) -> Iterator[tuple[Entry, str]]:
    for entry in entries:
        if entry.command is None:
            continue
        if entry.clause == "OUTPUT-QUEUE":
            yield entry, f"a command line belongs to input queues; {entry.name} is an output queue"
        elif len(entry.command) > COMMAND_CHARS_MAX:
            yield entry, f"the command line of {entry.name} is longer than {COMMAND_CHARS_MAX} characters"
        else:
            try:
                words = shlex.split(entry.command)
            except ValueError as error:
                yield entry, f"the command line of {entry.name} cannot be split into words: {error}"
            else:
                if not words or not words[0] or "\0" in entry.command:
                    yield entry, f"the command line of {entry.name} names no program"


def timeout_form(entries: Entries) -> Iterator[tuple[Entry, str]]:
    for entry in entries:
        if entry.timeout is None:
            continue
        if entry.command is None:
            yield entry, f"a timeout belongs to a command line; {entry.name} has none of its own"
        elif not re.fullmatch(r"[0-9]{1,6}", entry.timeout) or not 1 <= int(entry.timeout) <= COMMAND_SECONDS_MAX:
            yield entry, f"the timeout of {entry.name} is not a whole number of 1 to {COMMAND_SECONDS_MAX} seconds"


def command_redefined(entries: Entries) -> Iterator[tuple[Entry, str]]:
    above: list[Entry] = []
    for entry in entries:
        while above and above[-1].level >= entry.level:
            above.pop()
        holder = next((other for other in above if other.command is not None), None)
        if entry.command is not None and holder is not None:
            yield entry, f"the command line of {holder.name} covers {entry.name} and cannot be redefined below it"
        above.append(entry)


def policy_form(entries: Entries) -> Iterator[tuple[Entry, str]]:
    for entry in entries:
        try:
            of_words(entry.policy)
        except ArgumentInvalid as error:
            yield entry, f"{error.facts['argument'].replace('_', ' ')} of {entry.name}: {error.facts['why']}"


def entries_bounded(entries: Entries) -> Iterator[tuple[Entry, str]]:
    if len(entries) > HIERARCHY_ENTRIES_MAX:
        yield entries[HIERARCHY_ENTRIES_MAX], f"more than {HIERARCHY_ENTRIES_MAX} entries"


CHECKS: tuple[Check, ...] = (
    entries_bounded,
    input_required,
    clause_level,
    level_skipped,
    output_single,
    name_form,
    name_unique,
    password_form,
    command_form,
    timeout_form,
    command_redefined,
    policy_form,
)


def check(entries: Entries) -> None:
    """Raise with all broken rules and their places."""
    problems = [
        Problem(entry.position, what, rule.__name__.replace("_", "-"))
        for rule in CHECKS
        for entry, what in rule(entries)
    ]
    if problems:
        refuse(DescriptionInvalid, problems)


def paths(entries: Entries) -> list[str]:
    """Each entry's symbolic path from the top, joined by ``/``."""
    above: list[str] = []
    places = []
    for entry in entries:
        above += ["?"] * (entry.level - 1 - len(above))  # a skipped level, which is another rule's to tell
        above[entry.level - 1 :] = [entry.name]
        places.append("/".join(above))
    return places
