"""One word for one thing: the glossary has each word once, the docs use it, commands and errors use no other word."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from postroom import errors

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
GLOSSARY = (DOCS / "glossary.md").read_text()
LAST = "Words of other systems"
HEADINGS = re.findall(r"^## (.+)$", GLOSSARY, re.MULTILINE)
WORDS = [heading for heading in HEADINGS if heading != LAST]
# What was decided and measured speaks of other systems in their words.
OTHERS = {DOCS / "glossary.md", DOCS / "benchmarks.md"}
PAGES = [ROOT / "README.md", *sorted(set(DOCS.rglob("*.md")) - OTHERS - set((DOCS / "decisions").iterdir()))]
NEEDED = """
    message type form queue space station node mailbox dossier rule slice arc procedure sketch sphere token heartbeat
    hold lag journal lease step stage admission outbox
""".split()
SEARCHED = [  # what newcomers look for
    *("ack", "batch", "consumer group", "dead letter", "exchange", "offset", "partition", "retry", "saga", "schema"),
    *("topic", "worker", "workflow"),
]
AVOIDED = [  # in commands and errors each thing has one name
    *("pause", "suspend", "freeze", "dequeue", "envelope", "header", "topic", "channel", "inbox", "workflow", "saga"),
    *("audit log", "backlog", "micro-batch", "nack", "cron job", "scheduler"),
]


def sections() -> dict[str, str]:
    parts = re.split(r"^## (.+)$", GLOSSARY, flags=re.MULTILINE)[1:]
    return {name: text.strip() for name, text in zip(parts[::2], parts[1::2], strict=True)}


def elsewhere() -> dict[str, str]:
    """The words of other systems, each with where it is here."""
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", sections()[LAST], re.MULTILINE)
    return {word.strip(): here for row, here in rows if row != "elsewhere" for word in row.split(",")}


def uses(word: str, text: str) -> re.Match[str] | None:
    """The word in any of its forms: holds, aborted, processed."""
    stem = re.escape(word.removesuffix("e")) if word.endswith("e") else re.escape(word.removesuffix("y"))
    return re.search(rf"\b{stem}(\w{{0,4}})\b".replace(r"\ ", r"[\s-]"), text, re.IGNORECASE)


def test_each_word_stands_once_and_in_order() -> None:
    assert sorted(WORDS) == WORDS
    assert len(set(WORDS)) == len(WORDS)
    assert set(NEEDED) | {"working set"} <= set(WORDS)


def test_what_commands_and_errors_speak_of_is_a_word_of_the_glossary() -> None:
    commands = (DOCS / "reference" / "commands.md").read_text()
    groups = set(re.findall(r"^## postroom (\w+) \w+$", commands, re.MULTILINE))
    assert {"queue", "station", "sphere"} <= groups, "the search still works"
    codes = {
        found[1]
        for kind in errors.every_error()
        if (found := re.match(r"(\w+)-(unknown|held|exists|taken)$", kind.code))
    }
    # What files are in; a queue of a machine; what a server has no path or no verb for.
    known = {*WORDS, "language", "state", "resource", "method"}
    assert groups | codes - {"name"} <= known


def test_each_word_is_said_shortly_and_leads_on() -> None:
    for word, text in sections().items():
        if word != LAST:
            assert re.search(r"\]\(\w[^)]*\.md", text), f"{word}: where is more about it?"
            said = re.sub(r"\[[^]]*\]\([^)]*\)", "", text)
            assert 1 <= len(re.findall(r"[.?](?=\s|$)", said)) <= 3, f"{word}: one or two sentences"


def test_each_word_is_used_in_the_docs() -> None:
    text = "\n".join(page.read_text() for page in PAGES)
    for word in WORDS:
        assert uses(word, text), f"{word}: the docs do without it"


@pytest.mark.parametrize("word", SEARCHED)
def test_a_word_that_newcomers_search_leads_to_ours(word: str) -> None:
    assert re.search(r"\]\(\S+\)", elsewhere()[word])


def test_commands_and_errors_use_no_other_word_for_the_same_thing() -> None:
    commands = DOCS / "reference" / "commands.md"
    said = {commands.name: commands.read_text()}
    said |= {kind.code: f"{kind.template} {kind.advice} {kind.__doc__}" for kind in errors.every_error()}
    for where, text in said.items():
        for word in AVOIDED:
            assert word in elsewhere()
            found = uses(word, text)
            assert found is None, f"{where}: {found and found.group()!r}; the glossary has a word for it"


def test_the_search_for_other_words_finds_them() -> None:
    assert uses("pause", "the queue is paused")
    assert uses("dead letter", "a Dead-letter queue")
    assert uses("property", "its properties")
    assert not uses("topic", "a utopic room")
