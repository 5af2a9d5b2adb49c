"""The command that makes Spark start faster: prepare."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from postroom.interfaces.cli import output
from postroom.interfaces.cli.context import option, settings


def prepare(
    again: Annotated[bool, option("--again", "Make it again, even if it exists.")] = False,
    file: Annotated[
        Path | None,
        option("--file", "Make this file instead, for Java's option -XX:SharedArchiveFile.", show_default=True),
    ] = None,
) -> None:
    """Let Spark start faster for this user on this machine.

    It keeps Spark's classes in a file of 150 MB, which takes up to a minute. From then on, sessions start with half the
    processor time. Run it again after an upgrade of Java or Spark.

    \b
    Examples:
      postroom prepare
      postroom prepare --again
    """
    from postroom.engine.spark.prepare import prepare as prepared
    from postroom.exchange.output_file import refuse_room

    if file is not None:
        refuse_room(file)
    if sys.stderr.isatty() and not settings.json:
        output.note("starting Spark and keeping its classes; up to a minute")
    kept = prepared(file, again=again)
    size = kept.file.stat().st_size
    if settings.json:
        output.as_json({"file": str(kept.file), "size": size})
    else:
        what = "Spark's classes are kept" if kept.made else "Spark's classes were kept before"
        output.say(f"{what}: {kept.file} ({size / 1e6:.0f} MB)")
