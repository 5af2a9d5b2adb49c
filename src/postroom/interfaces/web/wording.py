"""Errors in the words of pages: what can be done there, and no commands."""

from __future__ import annotations

import re

from postroom.errors import PostroomError, QueueUnknown

_TEXTS = {
    "message-elsewhere": "form {key} is no longer where it was",
    "message-gone": "message {key} was processed and deleted",
    "resource-unknown": "there is no such page or button here: {path}",
}
_ADVICE = {
    "argument-invalid": "Correct what is named, and try again.",
    "dossier-unknown": "Choose one of the dossiers on the desk.",
    "key-invalid": "Copy the key from a page.",
    "message-elsewhere": "Look for its key in the field at the top: it says where the form is, if you may see that.",
    "message-gone": "Its trace tells its history.",
    "message-unknown": "Check the key: some of its digits may be wrong.",
    "principal-refused": "Check the name, and the password if there is one.",
    "queue-held": "Wait, or enable it on the page of the queue, with its password.",
    "queue-unknown": "Check the name; whoever may see everything has all queues on the overview.",
    "resource-unknown": "Check the address, or go on from the bar above or from the first page.",
    "right-missing": "Ask an operator for this right, if you need it.",
    "station-unknown": "Check the name.",
    "table-unknown": "Choose a table on the page of queries.",
}
#: What fields are called on pages.
_LABELS = {"object": "What", "principal": "User", "cron": "When", "zone": "In the time of", "verb": "May"}
_COMMAND = re.compile(r"\bpostroom [a-z]|--[a-z]|`|openapi|POSTROOM_|wait=")


def told(error: PostroomError) -> str:
    """What an error says, without the commands of a terminal."""
    facts = dict(error.facts)
    if error.code == "right-missing":
        what = "everything" if facts["object"] == "*" else facts["object"]
        return f"{facts['principal']} may not do this: it needs the right {facts['verb']} for {what} ({facts['why']})"
    for word in ("where", "argument"):
        if word in facts:
            facts[word] = _LABELS.get(str(facts[word]), facts[word])
    if facts.get("nearest") == QueueUnknown.listing:
        facts["nearest"] = ""
    template = _TEXTS.get(error.code) or without_commands(type(error).template)
    return template.format(**facts).encode(errors="backslashreplace").decode()


def advice(error: PostroomError) -> str:
    """What to do about an error on a page; empty if only a terminal helps."""
    return _ADVICE.get(error.code) or without_commands(error.advice)


def without_commands(text: str) -> str:
    """The parts of a text that name no command.

    >>> without_commands("{queue} is on hold; enable it with: postroom enable {level}")
    '{queue} is on hold'
    >>> without_commands("there is no {name} (postroom catalog lists everything){nearest}")
    'there is no {name}{nearest}'
    >>> without_commands("Correct it. `postroom load --check` finds all errors.")
    'Correct it.'
    """
    if not _COMMAND.search(text):
        return text
    parts = re.split(r"(?<=[;.]) ", re.sub(r" \([^()]*\bpostroom [^()]*\)", "", text))
    kept = [part for part in parts if not _COMMAND.search(part)]
    return " ".join(kept).rstrip(";")
