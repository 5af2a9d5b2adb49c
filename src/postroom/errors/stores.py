"""Errors of stores: files, databases, copies, archives."""

from __future__ import annotations

from postroom.errors.root import PostroomError


class StoreError(PostroomError):
    """The disk or the database server failed or did not respond."""


class ArchiveDamaged(StoreError):
    code = "archive-damaged"
    template = "the archive {folder} cannot be used: {why}"
    advice = "Restore the folder from a copy, or archive into another one; everything else still works."


class ArchiveMissing(StoreError):
    code = "archive-missing"
    template = "the archive {folder} is not there ({why}); if it was moved: postroom archive --moved FOLDER"
    advice = "Put the folder back, or say where it is now with `postroom archive --moved FOLDER`."


class BackupExists(StoreError):
    code = "backup-exists"
    template = "{file} already exists; choose another name, or give --replace"
    advice = "Choose another file, or give `--replace`."


class BackupRefused(StoreError):
    code = "backup-refused"
    template = "{file} cannot be replaced by a backup: {why}; choose another name"
    advice = "Choose another name for the backup; or, if nobody needs what is there, end its users and remove it first."


class BackupInvalid(StoreError):
    code = "backup-invalid"
    template = "{file} is not a valid backup of a room: {why}"
    advice = "Restore another backup; this one is damaged, or of another program."


class CommitUnknown(StoreError):
    """The commit was sent and no clear answer came back. The change is done completely or not at all."""

    code = "commit-unknown"
    template = (
        "the store did not confirm the commit of {label}: {why}. It happened in full or not at all; "
        "reopen the room and look, or repeat the call with the same idempotency key"
    )
    advice = "Open the room again and check; or retry the call with the same idempotency key."
    happened = "unknown"


class FolderUnsafe(StoreError):
    code = "folder-unsafe"
    template = "no room is created in {folder}: {why}. Use another folder, or change its permissions"
    advice = "Create the room in a folder of your own: `mkdir -m 700 FOLDER`."


class JournalArchived(StoreError):
    code = "journal-archived"
    template = "the journal is archived up to entry {end}: no stream from entry {line}; use startingOffset latest"
    advice = "Read the queue as a batch, and begin a stream with `startingOffset` = `latest`."


class JournalDiffers(StoreError):  # whoever verifies a room finds this; nobody else looks
    code = "journal-differs"
    template = "{count} difference(s) between the room and its journal; stop, copy the room, and restore a backup"
    advice = "Stop every program that uses the room, keep a copy of it, and restore the last good backup."


class JournalTooOld(StoreError):
    code = "journal-too-old"
    template = (
        "entry {line} of the journal is of an earlier version and has too little information for a replay; "
        "check messages and counts with: postroom doctor --deep"
    )
    advice = "Nothing is known to be wrong. Check messages and counts with `postroom doctor --deep`."


class LeaseHeld(StoreError):
    code = "lease-held"
    template = "{lease} is held by {owner} until {until}; only one may hold it"
    advice = (
        "With --until-idle an engine has the room alone, and with --senders one process sends. Stop the other one, or "
        "wait until it ends."
    )


class LeaseLost(StoreError):
    code = "lease-lost"
    template = "{lease} was taken over (our number {ours}, now {theirs}); this commit was refused"
    advice = "Another process has taken over; this one has changed nothing since. Start it again."


class RoomForked(StoreError):
    code = "room-forked"
    template = "this room was opened in process {opened} and used in {used}; open it again after a fork"
    advice = "Open the room in the process that uses it."


class RoomInUse(StoreError):
    code = "room-in-use"
    template = "{room} cannot be restored into: {why}"
    advice = "Restore into a new file or an empty database; or end its other users, and give `--replace`."


class RoomMissing(StoreError):
    code = "room-missing"
    template = (
        "there is no room at {url}. Create one with a queue description (postroom load FILE.qdl) "
        "or a queue (postroom queue create NAME)"
    )
    advice = "Check the path (`--room`, `POSTROOM_URL`), or create the room as the message says."


class RoomReentered(StoreError):
    code = "room-reentered"
    template = "this room is in the middle of a call in this thread; a signal handler must not use it"
    advice = "Set a flag in the signal handler, and use the room outside of it."


class StoreBusy(StoreError):
    code = "store-busy"
    template = "another process locked the store for longer than {seconds} s: {why}; try again"
    advice = "Try again. If it happens often, look for a program that locks the store, or move to PostgreSQL."


class StoreCorrupt(StoreError):
    code = "store-corrupt"
    template = "the store is damaged: {why}. Stop, copy the file, and restore a backup"
    advice = "Stop all programs, copy the file as it is, and restore a backup."


class StoreFull(StoreError):
    code = "store-full"
    template = "the store has no space for this: {why}. Free space and try again; receiving and reading still work"
    advice = "Free space, then try again. Messages can still be received and read."


class StoreNewer(StoreError):
    code = "store-newer"
    template = "the room has schema {found}, this Postroom knows up to {known}; install a newer Postroom"
    advice = "Install the version of Postroom that wrote the room, or a newer one."


class StoreReplaced(StoreError):
    code = "store-replaced"
    template = "{file} was removed or replaced while this process wrote to it: the last change may be lost"
    advice = "Find the program that removes or replaces the files of the room; then open it and check."
    happened = "unknown"


class StoreStopped(StoreError):
    code = "store-stopped"
    template = "this room accepts no more work: {why}. Open it again"
    advice = "Open the room again."


class StoreUnavailable(StoreError):
    code = "store-unavailable"
    template = "the store cannot be used: {why}"
    advice = "Check the path and its permissions, or the address and the server; then open the room again."


class UrlInvalid(StoreError):
    code = "url-invalid"
    template = "{url!r} is not a room: {why}. Give a path such as ./postroom.db or postgresql://host/database"
    advice = "Give a path such as `./postroom.db`, or `postgresql://host/database`."
