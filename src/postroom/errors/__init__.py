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

from postroom.errors.bodies import (
    BodyError,
    BodyMismatch,
    BodyTooLarge,
    EntryRefused,
    EventInvalid,
    EventRefused,
    FieldRefused,
    FunctionFailed,
    JsonMalformed,
    PropertyInvalid,
    SchemaInvalid,
    TextInvalid,
    XmlForbidden,
    XmlMalformed,
)
from postroom.errors.definitions import (
    CollectionUnknown,
    DefinitionError,
    DefinitionUnknown,
    DescriptionInvalid,
    EventsOnTheWay,
    FileUnreadable,
    FlowInvalid,
    FormInvalid,
    FunctionUnknown,
    LanguageUnknown,
    NameInvalid,
    NameTaken,
    ProgramInvalid,
    QueueInUse,
    QueueWatched,
    SchemaMalformed,
    SlicingInUse,
    TryExpired,
    TypeInvalid,
    TypeUnknown,
)
from postroom.errors.engine import (
    EngineError,
    JavaMissing,
    OutboxUnknown,
    OutputFailed,
    SparkUnavailable,
)
from postroom.errors.messages import (
    KeyInvalid,
    MessageCorrupt,
    MessageError,
    MessageGone,
    MessageUnknown,
    MessageUnsound,
    NotAllowed,
    PrincipalError,
    PrincipalRefused,
)
from postroom.errors.queues import (
    PasswordMissing,
    PasswordNeeded,
    PasswordWrong,
    QueueError,
    QueueHeld,
    QueueLocked,
    QueueNotSingle,
    QueueOwned,
    QueueUnknown,
)
from postroom.errors.root import (
    ArgumentInvalid,
    Happened,
    PostroomError,
)
from postroom.errors.spheres import (
    CheckTooShort,
    EntityExists,
    EntityUnknown,
    HeartbeatTooSlow,
    NotInSphere,
    ParticipantInDoubt,
    SphereAborted,
    SphereError,
    SphereExists,
    SphereOver,
    SphereUnknown,
    StateTaken,
    TransitionRefused,
)
from postroom.errors.stations import (
    AlbumUnknown,
    DossierUnknown,
    KeysExhausted,
    MessageElsewhere,
    NodeDown,
    NodeUnfit,
    NodeUnknown,
    QueryExpired,
    QueryOvertaken,
    QueryTooLarge,
    SqlRefused,
    StationError,
    StationInUse,
    StationTaken,
    StationUnknown,
)
from postroom.errors.stores import (
    ArchiveDamaged,
    ArchiveMissing,
    BackupExists,
    BackupInvalid,
    CommitUnknown,
    FolderUnsafe,
    JournalArchived,
    JournalDiffers,
    JournalTooOld,
    LeaseHeld,
    LeaseLost,
    RoomForked,
    RoomInUse,
    RoomMissing,
    RoomReentered,
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreNewer,
    StoreReplaced,
    StoreStopped,
    StoreUnavailable,
    UrlInvalid,
)


def every_error() -> tuple[type[PostroomError], ...]:
    """All concrete errors by code; the reference page and the tests walk this."""
    found: list[type[PostroomError]] = [PostroomError]
    for kind in found:
        found.extend(kind.__subclasses__())  # which the loop then comes to
    return tuple(sorted((kind for kind in found if kind.code), key=lambda kind: kind.code))


__all__ = [
    "AlbumUnknown",
    "ArchiveDamaged",
    "ArchiveMissing",
    "ArgumentInvalid",
    "BackupExists",
    "BackupInvalid",
    "BodyError",
    "BodyMismatch",
    "BodyTooLarge",
    "CheckTooShort",
    "CollectionUnknown",
    "CommitUnknown",
    "DefinitionError",
    "DefinitionUnknown",
    "DescriptionInvalid",
    "DossierUnknown",
    "EngineError",
    "EntityExists",
    "EntityUnknown",
    "EntryRefused",
    "EventInvalid",
    "EventRefused",
    "EventsOnTheWay",
    "FieldRefused",
    "FileUnreadable",
    "FlowInvalid",
    "FolderUnsafe",
    "FormInvalid",
    "FunctionFailed",
    "FunctionUnknown",
    "Happened",
    "HeartbeatTooSlow",
    "JavaMissing",
    "JournalArchived",
    "JournalDiffers",
    "JournalTooOld",
    "JsonMalformed",
    "KeyInvalid",
    "KeysExhausted",
    "LanguageUnknown",
    "LeaseHeld",
    "LeaseLost",
    "MessageCorrupt",
    "MessageElsewhere",
    "MessageError",
    "MessageGone",
    "MessageUnknown",
    "MessageUnsound",
    "NameInvalid",
    "NameTaken",
    "NodeDown",
    "NodeUnfit",
    "NodeUnknown",
    "NotAllowed",
    "NotInSphere",
    "OutboxUnknown",
    "OutputFailed",
    "ParticipantInDoubt",
    "PasswordMissing",
    "PasswordNeeded",
    "PasswordWrong",
    "PostroomError",
    "PrincipalError",
    "PrincipalRefused",
    "ProgramInvalid",
    "PropertyInvalid",
    "QueryExpired",
    "QueryOvertaken",
    "QueryTooLarge",
    "QueueError",
    "QueueHeld",
    "QueueInUse",
    "QueueLocked",
    "QueueNotSingle",
    "QueueOwned",
    "QueueUnknown",
    "QueueWatched",
    "RoomForked",
    "RoomInUse",
    "RoomMissing",
    "RoomReentered",
    "SchemaInvalid",
    "SchemaMalformed",
    "SlicingInUse",
    "SparkUnavailable",
    "SphereAborted",
    "SphereError",
    "SphereExists",
    "SphereOver",
    "SphereUnknown",
    "SqlRefused",
    "StateTaken",
    "StationError",
    "StationInUse",
    "StationTaken",
    "StationUnknown",
    "StoreBusy",
    "StoreCorrupt",
    "StoreError",
    "StoreFull",
    "StoreNewer",
    "StoreReplaced",
    "StoreStopped",
    "StoreUnavailable",
    "TextInvalid",
    "TransitionRefused",
    "TryExpired",
    "TypeInvalid",
    "TypeUnknown",
    "UrlInvalid",
    "XmlForbidden",
    "XmlMalformed",
    "every_error",
]
