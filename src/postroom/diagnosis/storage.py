"""The store: database and settings, schema, and integrity of the data."""

from __future__ import annotations

from collections.abc import Iterator

from postroom.diagnosis.finding import Case, Told, note, ok, warning, wrong
from postroom.errors import JournalTooOld
from postroom.limits import EXAMINED_MAX, GROWN_ROWS, SAMPLE_MESSAGES
from postroom.model.key import key_text
from postroom.store import file_of
from postroom.store.files.rights import exposed
from postroom.store.kernel.message_rows import State
from postroom.store.kernel.transaction import Transaction
from postroom.store.migrations import MIGRATIONS
from postroom.store.proof.verification import verified

#: What a commit needs to last, and what else may be said.
_LASTING = {
    "journal_mode": ("wal",),
    "synchronous": ("2", "3"),
    "fsync": ("on",),
    "full_page_writes": ("on",),
    "synchronous_commit": ("on", "local", "remote_write", "remote_apply"),
}
_MEND = {
    "journal_mode": "move the file to a local disk: the one that it is on does not allow a write-ahead log",
    "fsync": "set fsync = on in postgresql.conf, and: pg_ctl reload",
    "full_page_writes": "set full_page_writes = on in postgresql.conf, and: pg_ctl reload",
}
_DAMAGED_FILE = "stop, copy the file, restore a backup"
_REBUILD = "postroom mend makes the index anew; then look for the reason with pg_amcheck"
_DIFFERS = "postroom verify lists everything; keep a copy, then: postroom mend"
_DAMAGED = "keep a copy, and restore a backup; postroom trace tells what the message went through"


def database(case: Case) -> Iterator[Told]:
    """Which database it is, and whether its commits are durable."""
    about = case.store.read(lambda tx: tx.session.about())
    weak = {name: value for name, value in about.settings.items() if value not in _LASTING[name]}
    for name, value in weak.items():
        what = f"{name} is {value}: what was confirmed may be lost when the machine fails"
        yield wrong(what, case.where, _MEND.get(name, f"set {name} to {_LASTING[name][0]}"))
    if not weak:
        settings = ", ".join(f"{name} {value}" for name, value in sorted(about.settings.items()))
        yield ok(f"{about.kind} {about.version}: {settings}", case.where)


def schema(case: Case) -> Iterator[Told]:
    about = case.store.read(lambda tx: tx.session.about())
    yield ok(f"schema {about.schema} of {len(MIGRATIONS)}")


def access(case: Case) -> Iterator[Told]:
    """Whether other users can open or replace the file of a room."""
    file = file_of(case.network.url)
    for text in exposed(file) if file is not None else ():
        yield warning(text, case.where, "unless that is meant: chmod 600 the files of the room, chmod 700 their folder")


def files(case: Case) -> Iterator[Told]:
    """The database's own integrity check; only with a full examination."""
    damage = case.store.read(lambda tx: tx.session.damage()) if case.deep else None
    if not case.deep:
        yield ok("not read; postroom doctor --deep reads them")
    elif not damage and file_of(case.network.url) is None:
        yield ok("the index that messages are taken by was compared; pg_amcheck on the server reads all files")
    else:
        for remark in damage or ():
            yield wrong(
                f"the database says: {remark}", case.where, _DAMAGED_FILE if file_of(case.network.url) else _REBUILD
            )


def messages(case: Case) -> Iterator[Told]:
    """Whether messages still match their hash: the newest, or all of them."""
    sample = None if case.deep else SAMPLE_MESSAGES
    looked, unsound = case.store.read(lambda tx: tx.soundness.unsound(sample, EXAMINED_MAX))
    for message in unsound:
        yield wrong(f"message {key_text(message.key)} does not match its hash", message.queue, _DAMAGED)
    for message in case.store.read(lambda tx: tx.soundness.set_aside(EXAMINED_MAX)):
        what = f"message {key_text(message.key)} was found damaged and set aside: nobody will receive it"
        yield warning(what, message.queue, f"postroom trace {key_text(message.key)}")
    if not unsound:
        yield ok(f"{looked} message(s) read, " + ("all that there are" if case.deep else "the newest"))


def chains(case: Case) -> Iterator[Told]:
    """Whether the journal has the whole history of each message, without gaps; with a full examination, whether all
    that it says leads to what is stored."""
    sample = None if case.deep else SAMPLE_MESSAGES
    torn = case.store.read(lambda tx: tx.soundness.torn(sample, tx.journal.newest(), EXAMINED_MAX))
    for key, line in torn:
        if key is None:
            yield wrong(f"entry {line} of the journal is about no message", "journal", "postroom verify")
        else:
            what = f"the journal has a gap in what happened to message {key_text(key)}"
            yield wrong(what, "journal", f"postroom trace {key_text(key)}; then restore a backup")
    if case.deep and not torn:
        yield from case.store.read(_replayed)


def _replayed(tx: Transaction) -> list[Told]:
    """Where a replay of the journal differs; other checks tell of damaged messages, and of counts."""
    try:
        found = verified(tx).differences
    except JournalTooOld as too_old:
        return [note(str(too_old), "journal")]
    damaged = {f"message {key_text(message.key)}" for message in tx.soundness.unsound(None, EXAMINED_MAX)[1]}
    remarks = []
    for what, journal, tables in found:
        if what not in damaged and not what.startswith("counts of queue "):
            by_both = f"{journal or 'nothing'} by the journal, {tables or 'nothing'} by the tables"
            remarks.append(wrong(f"{what}: {by_both}", "journal", _DIFFERS))
    return remarks


def growth(case: Case) -> Iterator[Told]:
    """What has grown large and is never removed."""
    rows, kept = case.store.read(lambda tx: (tx.upkeep.rows(), tx.upkeep.retentions()))
    for kind, count in rows.items():
        if count >= GROWN_ROWS and kind == "journal":
            yield note(f"the journal has {count} entries", case.where, "postroom archive --before 90d FOLDER")
        elif count >= GROWN_ROWS and kind not in kept:
            yield note(f"{count} {kind}, and they are kept for ever", case.where, f"postroom retention set {kind} 90d")


def counts(case: Case) -> Iterator[Told]:
    """Whether the counts of queues are right; only with a full examination."""
    if not case.deep:
        yield ok("not counted; postroom doctor --deep counts them")
    else:
        yield from case.store.read(_miscounted)


def _miscounted(tx: Transaction) -> list[Told]:
    counted, remarks = tx.soundness.counts(), []
    for queue in tx.queues.all():
        stored = {State.UNPROCESSED: queue.unprocessed, State.PROCESSED: queue.processed}
        for state, count in stored.items():
            real = counted.get((queue.id, int(state)), 0)
            if real != count:
                what = f"it counts {count} {state.name.lower()} message(s), and {real} are there"
                remarks.append(wrong(what, queue.name, "stop, keep a copy, and restore a backup"))
    return remarks
