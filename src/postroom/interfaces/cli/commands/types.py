"""Commands on message types: type list, export, import."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

from postroom.errors import FileUnreadable, JsonMalformed
from postroom.interfaces.cli import output
from postroom.interfaces.cli.context import Commands, argument, opened, option, settings
from postroom.model.body import parse_json

type_app = Commands(help="Message types: their versions, and as JSON Schema and Avro.")


@type_app.command("list")
def type_list(
    every: Annotated[bool, option("--all", "Also the earlier versions.")] = False,
) -> None:
    """List the message types of the room, with the version since which each is as it is.

    \b
    Examples:
      postroom type list
      postroom type list --all
    """
    with opened() as it:
        types = it.definitions.types(older=every)
    if settings.json:
        output.as_json({"types": [type_version.as_dict() for type_version in types]})
        return
    rows = [
        (type_version.name, type_version.version, ", ".join(field.name for field in type_version.type.fields))
        for type_version in types
    ]
    output.table(["type", "version", "field names"], rows) if rows else output.note(
        "no type is defined: load a .form file"
    )


@type_app.command("export")
def type_export(
    name: Annotated[str, argument("TYPE")],
    avro: Annotated[bool, option("--avro", "A record of Avro instead of a JSON Schema.")] = False,
) -> None:
    """Print a message type as a JSON Schema, or as an Avro schema.

    \b
    Examples:
      postroom type export MEMO > memo.schema.json
      postroom type export MEMO --avro > memo.avsc
    """
    with opened() as it:
        schema = it.definitions.schema(name, avro=avro)
    output.answer({"definition": schema}, json.dumps(schema, indent=2, ensure_ascii=False))


@type_app.command("import")
def type_import(
    file: Annotated[str, argument("FILE", "A JSON Schema or an Avro record.")],
    name: Annotated[str | None, option("--name TYPE", "The name of the type.")] = None,
) -> None:
    """Print a JSON Schema or an Avro schema as a form, which postroom load takes.

    A field is a string, number, boolean, date or time, or a list of them; anything else is refused, also
    what limits values (enum, minimum, pattern, maxLength) and defaults.

    \b
    Example:
      postroom type import order.schema.json > order.form
    """
    from postroom.exchange.type_schemas import as_form, imported

    try:
        schema = parse_json(Path(file).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise FileUnreadable(file=file, why=str(error)) from error
    except JsonMalformed as error:
        raise FileUnreadable(file=file, why=f"it is not JSON: {error.facts['why']}") from error
    form = as_form(imported(schema, name))
    output.answer({"description": form}, form)
