"""Write the reference pages that are made from the code: commands, errors, limits, Python.

python docs/reference/generate.py            write them
python docs/reference/generate.py --check    exit with 1 if one is out of date
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import python_api
import typer.main
from typer.core import TyperGroup

from postroom import errors, limits
from postroom.interfaces.cli.main import program

HERE = Path(__file__).parent
MADE = "Made from the code by `make reference`."


def commands() -> str:
    parts = ["# Commands", MADE]
    for name, text in _helps(typer.main.get_command(program()), "postroom"):
        parts += [f"## {name}", f"```text\n{text}\n```"]
    return "\n\n".join(parts) + "\n"


def _helps(command: click.Command, name: str) -> Iterator[tuple[str, str]]:
    context = command.make_context(name, [], resilient_parsing=True)
    context.max_content_width, context.terminal_width = 84, 84  # what the site shows without scrolling
    yield name, "\n".join(line.rstrip() for line in command.get_help(context).splitlines())
    if isinstance(command, TyperGroup):
        for word in command.list_commands(context):  # in the order of the help
            yield from _helps(command.commands[word], f"{name} {word}")


def error_codes() -> str:
    rows = ["| code | happened | status | message | what to do |", "|---|---|---|---|---|"]
    for kind in errors.every_error():
        template = kind.template.replace("|", "\\|").replace("\n", " ")
        name = f"`{kind.code}` (`{kind.__name__}`)"
        rows.append(f"| {name} | {kind.happened} | {kind.status} | {template} | {kind.advice} |")
    note = (
        "On the command line: `postroom: CODE: message` on standard error, exit code 1. In Python: `postroom.errors`. "
        "*Happened* says whether anything was changed: `no`, or `unknown` if that is known only after a restart. "
        "*Status* is the ANSI status key; 9x are ours. `error.advice` is what to do."
    )
    return "\n\n".join(["# Errors", MADE, note, "\n".join(rows)]) + "\n"


def bounds() -> str:
    rows = ["| limit | value | what for |", "|---|---|---|"]
    for line in Path(limits.__file__).read_text().splitlines():
        found = re.match(r"([A-Z_]+): Final = [^#]+(?:# (.*))?$", line)
        if found:
            rows.append(f"| `{found[1]}` | {getattr(limits, found[1]):,} | {found[2] or ''} |")
    return "\n\n".join(["# Limits", MADE, "\n".join(rows)]) + "\n"


def python() -> str:
    return python_api.page(MADE)


def _json_type(name: dict[str, Any]) -> str:
    """The one type of a name; most may also be null where there is nothing to say."""
    if "anyOf" in name or "$ref" in name:
        return "object"
    types = [name["type"]] if isinstance(name["type"], str) else name["type"]
    return ", ".join(types)


def vocabulary() -> str:
    """The names of JSON documents, from the schema beside this file."""
    schema = json.loads((HERE / "json.schema.json").read_text())["$defs"]
    note = (
        "With `--json` a command prints one document, on one line. It begins with `status`. A name means one thing in "
        "all documents: a list has the plural, a number of things ends in `_count`, `since` is a time and `version` a "
        "version of the definitions. A place is a queue by its name, `mailbox:NAME`, or the database of a station by "
        "the station's name. Times are ISO 8601 in UTC. Names that users chose (fields, properties, details) are "
        "nested below names of ours. [json.schema.json](json.schema.json) is the schema for programs, and every test "
        "of commands checks against it. The reasons: [0042](../decisions/0042-json.md)."
    )
    shapes = ["| command | its document has, besides `status` |", "|---|---|"]
    for command, several in schema["commands"].items():
        for shape in several.get("anyOf", [several]):
            has = [f"`{name}`" if name in shape["required"] else f"`{name}`?" for name in shape["properties"]]
            shapes.append(f"| `{command}` | {', '.join(has[1:]) or 'nothing'} |")
    names = ["| name | type | what it is |", "|---|---|---|"]
    names += [f"| `{name}` | {_json_type(each)} | {each['description']} |" for name, each in schema["names"].items()]
    about = (
        "A name with `?` may be missing. A command that is listed more than once prints one of these documents. If "
        "nothing was done, it is `error` instead. `cobol run`, `cobol session`, `gateway listen` and `lsp` print none."
    )
    parts = ["# JSON", MADE, note, "## Commands", about, "\n".join(shapes)]
    return "\n\n".join([*parts, "## Names", "\n".join(names)]) + "\n"


def names_for_openapi() -> str:
    """The names of JSON documents as the server describes its answers by them."""
    schema = json.loads((HERE / "json.schema.json").read_text())["$defs"]
    return json.dumps(schema["names"], indent=1, ensure_ascii=False) + "\n"


PAGES = {
    "../../src/postroom/interfaces/http/contract/vocabulary.json": names_for_openapi,
    "commands.md": commands,
    "errors.md": error_codes,
    "json.md": vocabulary,
    "limits.md": bounds,
    "python.md": python,
}


def main(check: bool) -> int:
    stale = [name for name, make in PAGES.items() if not (HERE / name).exists() or (HERE / name).read_text() != make()]
    if check:
        print(f"out of date: {', '.join(stale)}" if stale else "up to date")
        return 1 if stale else 0
    for name in stale:
        (HERE / name).write_text(PAGES[name]())
    return 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
