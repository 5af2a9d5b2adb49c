"""Commands that exchange files with other programs: export, and the sending of files."""

from __future__ import annotations

from typing import Annotated, Any

from postroom.errors import ArgumentInvalid
from postroom.interfaces.cli import output
from postroom.interfaces.cli.context import OptionalQueueArgument, opened, option, settings


def export(
    queue: OptionalQueueArgument = None,
    file: Annotated[str | None, option("--file FILE", "Messages of QUEUE: .jsonl, .csv, .parquet.")] = None,
    processed: Annotated[bool, option("--processed", "With --file: those that were received.")] = False,
    xes: Annotated[str | None, option("--xes FILE", "The event log as XES: FILE.xes.")] = None,
    ocel: Annotated[str | None, option("--ocel FILE", "As OCEL 2.0: FILE.json or .xml.")] = None,
    case: Annotated[str | None, option("--case CASE", "A case of XES: message (default) or cause.")] = None,
    replace: Annotated[bool, option("--replace", "Replace an existing file.")] = False,
) -> None:
    """Write messages, or the journal as an event log, into a file.

    With --file, the messages of a queue or level that can be received; they stay there. Those that are leased or
    delayed are left out, and their number is told. postroom send --messages --file reads what is written as .jsonl.
    The other two write the journal, for process mining:

    XES has one trace for each message, or with --case cause for each message with everything that followed from it.
    OCEL has the messages as objects, related to their causes. A name that ends in .gz is compressed. The file is there
    whole or not at all.

    \b
    Examples:
      postroom export orders --file orders.jsonl
      postroom export CLAIMS --processed --file claims.parquet
      postroom export --xes office.xes
      postroom export --xes orders.xes.gz --case cause
      postroom export --ocel office.json
    """
    if [file, xes, ocel].count(None) != 2:
        raise ArgumentInvalid(argument="--file", why="give one of --file, --xes and --ocel")
    if xes is None and case is not None:
        raise ArgumentInvalid(argument="--case", why="it goes with --xes")
    if (file is None) is not (queue is None) or (file is None and processed):
        raise ArgumentInvalid(argument="QUEUE", why="--file goes with a queue or level, --xes and --ocel with none")
    if file is not None:
        _export_messages(queue or [], file, processed, replace)
        return
    with opened() as it, output.progress("exporting") as progress:
        if xes is not None:
            log = it.journal.export_xes(xes, case=case or "message", replace=replace, progress=progress)
        else:
            log = it.journal.export_ocel(ocel or "", replace=replace, progress=progress)
    if settings.json:
        output.as_json(log.as_dict())
        return
    cases = "case(s)" if xes is not None else "object(s)"
    output.say(f"{log.file}: {log.event_count} event(s) of {log.case_count} {cases}")
    if log.damaged_count:
        output.note(f"{log.damaged_count} damaged entries of the journal are missing in it: postroom verify")


def _export_messages(queue: list[str], file: str, processed: bool, replace: bool) -> None:
    with opened() as it, output.progress("exporting") as progress:
        made = it.queues.export(queue, file, processed=processed, replace=replace, progress=progress)
        left_out = 0 if processed else sum(count.leased + count.delayed for count in it.queues.count(*queue).queues)
    output.answer(made.as_dict(), f"{made.file}: {made.message_count} message(s)")
    if made.damaged_count:
        output.note(f"{made.damaged_count} damaged message(s) are missing in it: postroom verify")
    if left_out:
        output.note(f"{left_out} message(s) that are leased or wait for their time are not in it")


def send_file(
    queue: list[str],
    file: str,
    messages: bool,
    idempotency_key: str | None,
    **options: Any,
) -> None:
    """Send every row of a file as a message, except those sent before."""
    with opened() as it, output.progress("sending") as progress:
        sent = it.queues.send_file(
            queue, file, messages=messages, idempotency_key=idempotency_key or "", progress=progress, **options
        )
    if settings.json:
        output.as_json(sent.as_dict())
    else:
        before = f", {sent.skipped_count} were sent before" if sent.skipped_count else ""
        output.say(f"{sent.sent_count} message(s) sent to {sent.queue}{before}")
