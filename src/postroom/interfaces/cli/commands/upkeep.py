"""Commands for keeping a room small and safe: retention, sweep, archive, backup, restore."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from postroom.errors import ArgumentInvalid, RoomMissing
from postroom.interfaces.cli import output
from postroom.interfaces.cli.context import (
    Commands,
    ConfOption,
    MasterOption,
    argument,
    opened,
    option,
    settings,
    spark_settings,
)
from postroom.model.moment import span, to_datetime, to_iso, to_span

if TYPE_CHECKING:
    from postroom.model.progress import OnProgress
    from postroom.store.proof.verification import Verified

retention_app = Commands(help="How long records that grow with use are kept.")
_KINDS = "spheres, heartbeats, visits, receipts or meta-events"
_MICROSECOND = timedelta(microseconds=1)


@retention_app.command("list")
def retention_list() -> None:
    """List the kinds of records that grow with use, and how long each is kept.

    \b
    Example:
      postroom retention list
    """
    with opened() as it:
        kept = it.engine.retentions()
    ages = {kind: None if age is None else to_span(age // _MICROSECOND) for kind, age in kept.items()}
    if settings.json:
        output.as_json({"retentions": ages})
    else:
        output.table(["kind", "kept"], [(kind, age or "for ever") for kind, age in ages.items()])


@retention_app.command("set")
def retention_set(
    kind: Annotated[str, argument("KIND", _KINDS + ".")],
    age: Annotated[str, argument("AGE", "Such as 30d, 12h or 90m; or: forever.")],
) -> None:
    """Set how long a kind of record is kept.

    Older records are deleted by the next sweep, or by a running engine. Records that are still needed are kept: a
    sphere that has not ended, a database in doubt, mail in transit. After a receipt is deleted, its idempotency key is
    not recognised: a retry then creates a second message.

    \b
    Examples:
      postroom retention set spheres 30d
      postroom retention set receipts 7d
      postroom retention set receipts forever
    """
    with opened() as it:
        it.engine.set_retention(kind, None if age == "forever" else _age(age, "AGE"))
        kept = it.engine.retentions()[kind]
    shown = None if kept is None else to_span(kept // _MICROSECOND)
    output.answer({"kind": kind, "age": shown}, f"{kind} are kept {shown or 'for ever'}")


def sweep(
    dry_run: Annotated[bool, option("--dry-run", "Only show what would be deleted.")] = False,
) -> None:
    """Delete messages and records that are no longer needed.

    Deletes processed messages that belong to no slice, and records after their retention time (postroom retention). A
    running engine does this automatically. The history stays in the journal, for trace.

    \b
    Examples:
      postroom sweep --dry-run
      postroom sweep
    """
    with opened() as it:
        removable = it.engine.sweepable() if dry_run else it.engine.sweep_by_kind()
    if settings.json:
        name = "would_remove" if dry_run else "removed_count"
        output.as_json({name: sum(removable.values()), "kinds": removable})
        return
    did = "would be removed" if dry_run else "removed"
    output.say(f"{removable.pop('messages')} message(s) {did}")
    for kind, count in removable.items():
        output.say(f"{count} of {kind} {did}")


def archive(
    folder: Annotated[str | None, argument("FOLDER", "The folder of the archives.")] = None,
    before: Annotated[
        str | None, option("--before WHEN", "Entries older than this time (ISO 8601) or age (90d).")
    ] = None,
    moved: Annotated[
        bool, option("--moved", "Tell the room that you have moved its archives to FOLDER; moves nothing.")
    ] = False,
    master: MasterOption = "local[*]",
    conf: ConfOption = None,
) -> None:
    """Move the older part of the journal into a folder.

    Spark writes it as Parquet. It is read back and compared before an entry is removed. If it is killed, it has
    archived everything or nothing, and the next run continues. trace, locate and verify work as before, as long as the
    folder is there. Without a time the archives are listed.

    \b
    Examples:
      postroom archive --before 90d /var/lib/postroom/archive
      postroom archive --before 2026-01-01T00:00:00Z /var/lib/postroom/archive
      postroom archive --moved /mnt/archive
      postroom archive
    """
    if moved and before:
        raise ArgumentInvalid(argument="--moved", why="give either --before or --moved")
    if (moved or before) and folder is None:
        raise ArgumentInvalid(argument="FOLDER", why="say in which folder the archives are, or are to be")
    with opened() as it:
        if before is not None:
            with output.progress("archiving") as progress:
                archived = it.journal.archive(
                    _when(before), folder or "", progress=progress, master=master, conf=spark_settings(conf)
                )
        else:
            archived = it.journal.archive_moved(folder or "") if moved else it.journal.archives()
    if settings.json:
        output.as_json({"archives": [record.as_dict() for record in archived]})
    elif archived:
        output.table(
            ["folder", "first", "last", "lines", "until"],
            [
                (record.folder, record.first, record.last, record.lines, to_iso(to_datetime(record.until)))
                for record in archived
            ],
        )
    else:
        output.note("no entry is that old" if before else "nothing is archived")


def backup(
    file: Annotated[str, argument("FILE", "The backup to write.")],
    replace: Annotated[bool, option("--replace", "Replace an existing file.")] = False,
    no_check: Annotated[bool, option("--no-check", "Even if the room does not match its journal.")] = False,
) -> None:
    """Write the whole room into one file, while it is in use.

    The file is a consistent snapshot, and is verified before it gets its name. It is a room on SQLite, whatever store
    this one is in, and postroom restore creates a room on SQLite or PostgreSQL from it. Archives of the journal are not
    in it: copy their folders.

    \b
    Examples:
      postroom backup /backups/monday.db
      postroom backup latest.db --replace --room postgresql://host/db
    """
    with opened() as it, output.progress("copying") as progress:
        made = it.backup(file, replace=replace, check=not no_check, progress=progress)
    output.answer(made.as_dict(), f"{made.file}: {made.lines} journal entries, {made.messages} message(s), verified")


def restore(
    file: Annotated[str, argument("FILE", "A backup.")],
    replace: Annotated[bool, option("--replace", "Even if the room is not empty; deletes everything in it.")] = False,
) -> None:
    """Create a room from a backup.

    End every process that uses the room first. The restored room does not reuse keys that the original has given out
    since the backup, up to 100,000. Leases of engines are free. Unfinished spheres are aborted by the next engine,
    because their owners do not use this room.

    \b
    Examples:
      postroom restore /backups/monday.db --room orders.db
      postroom restore /backups/monday.db --room postgresql://host/db
    """
    if not Path(file).exists():  # before a room is made for it
        raise ArgumentInvalid(argument="FILE", why=f"there is no {file}")
    with output.progress("copying") as progress:
        try:
            with opened() as it:
                restored = it.operations.restore(file, replace=replace, progress=progress)
                room = it.store.session.place
        except RoomMissing:
            room, restored = _restored_anew(Path(file).absolute(), progress)
    output.answer(
        {"room": room, "lines": restored.lines, "message_count": restored.messages},
        f"{room}: {restored.lines} journal entries, {restored.messages} message(s), verified",
    )


def _restored_anew(file: Path, progress: OnProgress | None) -> tuple[str, Verified]:
    """A new room from a backup; no room is made for one that is refused."""
    from postroom.room.opening import resolved
    from postroom.store import file_of
    from postroom.store.upkeep import backup

    with (
        backup.restorable(file, file_of(resolved(settings.room)), progress=progress) as copy,
        opened(create=True) as it,
    ):
        return it.store.session.place, backup.fill(it.store, copy, progress=progress)


def _age(text: str, argument: str) -> timedelta:
    microseconds = span(text)
    if microseconds is None or microseconds > 10**18:
        raise ArgumentInvalid(argument=argument, why=f"an age such as 30d, 12h or 90m, not {text!r}")
    return timedelta(microseconds=microseconds)


def _when(text: str) -> datetime | timedelta:
    if span(text) is not None:
        return _age(text, "--before")
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise ArgumentInvalid(
            argument="--before", why="a time such as 2026-11-01T00:00:00Z, or an age such as 90d"
        ) from None
