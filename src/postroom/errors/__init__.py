"""Every error Postroom raises, as one tree.

    PostroomError
    ├── ArgumentInvalid            argument-invalid
    ├── DefinitionError
    │   ├── CobolInvalid           cobol-invalid
    │   ├── CollectionUnknown      collection-unknown
    │   ├── CompileFailed          compile-failed
    │   ├── CompilerMissing        compiler-missing
    │   ├── DefinitionUnknown      definition-unknown
    │   ├── DescriptionInvalid     description-invalid
    │   ├── EventsOnTheWay         events-on-the-way
    │   ├── FileLineInvalid        file-line-invalid
    │   ├── FileUnreadable         file-unreadable
    │   ├── FileUnwritable         file-unwritable
    │   ├── FlowInvalid            flow-invalid
    │   ├── FormInvalid            form-invalid
    │   ├── FunctionUnknown        function-unknown
    │   ├── LanguageUnknown        language-unknown
    │   ├── NameInvalid            name-invalid
    │   ├── NameTaken              name-taken
    │   ├── ProgramInvalid         program-invalid
    │   ├── QueueInUse             queue-in-use
    │   ├── QueueNeeded            queue-needed
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
    │   ├── FormatUnclear          format-unclear
    │   ├── FunctionFailed         function-failed
    │   ├── JsonMalformed          json-malformed
    │   ├── PropertyInvalid        property-invalid
    │   ├── SchemaInvalid          schema-invalid
    │   ├── TextInvalid            text-invalid
    │   ├── XmlForbidden           xml-forbidden
    │   └── XmlMalformed           xml-malformed
    ├── PrincipalError
    │   ├── NotAllowed             not-allowed
    │   ├── PrincipalInUse         principal-in-use
    │   ├── PrincipalRefused       principal-refused
    │   ├── RightMissing           right-missing
    │   └── TokenRefused           token-refused
    ├── MessageError
    │   ├── KeyInvalid             key-invalid
    │   ├── MessageCorrupt         message-corrupt     (happened: yes)
    │   ├── MessageGone            message-gone
    │   ├── MessageNotWaiting      message-not-waiting
    │   ├── MessageUnknown         message-unknown
    │   ├── MessageUnsound         message-unsound
    │   └── RedriveRefused         redrive-refused
    ├── QueueError
    │   ├── AreaShort              area-short
    │   ├── LeaseOver              lease-over
    │   ├── PasswordMissing        password-missing
    │   ├── PasswordNeeded         password-needed
    │   ├── PasswordWrong          password-wrong
    │   ├── QueueFull              queue-full
    │   ├── QueueHeld              queue-held
    │   ├── QueueLocked            queue-locked
    │   ├── QueueNotSingle         queue-not-single
    │   ├── QueueOwned             queue-owned
    │   ├── QueueUnknown           queue-unknown
    │   ├── SourceHeld             source-held
    │   └── SourceUnknown          source-unknown
    ├── StationError
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
    │   ├── StationUnknown         station-unknown
    │   └── TableUnknown           table-unknown
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
    │   ├── LibraryMissing         library-missing
    │   ├── SparkUnavailable       spark-unavailable
    │   └── WorkerUnavailable      worker-unavailable
    ├── GatewayError
    │   ├── ArrivalRefused         arrival-refused
    │   ├── ArrivalTooEarly        arrival-too-early
    │   ├── GatewayExists          gateway-exists
    │   ├── GatewayInUse           gateway-in-use
    │   ├── GatewayInvalid         gateway-invalid
    │   ├── GatewayUnknown         gateway-unknown
    │   └── GatewayUnreachable     gateway-unreachable
    ├── StreamError
    │   ├── StreamCheckpoint       stream-checkpoint
    │   ├── StreamFailed           stream-failed
    │   ├── StreamPackageMissing   stream-package-missing
    │   └── StreamUnknown          stream-unknown
    ├── OutboxUnknown              outbox-unknown
    ├── OutputFailed               output-failed
    ├── ServerError
    │   ├── AnswerLost             answer-lost         (happened: unknown)
    │   ├── ClientSlow             client-slow
    │   ├── EntryInvalid           entry-invalid
    │   ├── ListenRefused          listen-refused
    │   ├── MethodUnknown          method-unknown
    │   ├── NotRemote              not-remote
    │   ├── RequestHeadTooLarge    request-head-too-large
    │   ├── RequestInvalid         request-invalid
    │   ├── RequestRefused         request-refused
    │   ├── RequestTooLarge        request-too-large
    │   ├── ResourceUnknown        resource-unknown
    │   ├── ServerExposed          server-exposed
    │   ├── ServerFailed           server-failed       (happened: unknown)
    │   ├── ServerStopping         server-stopping
    │   ├── ServerUnreachable      server-unreachable
    │   └── TooManyRequests        too-many-requests
    └── StoreError
        ├── ArchiveDamaged         archive-damaged
        ├── ArchiveMissing         archive-missing
        ├── BackupExists           backup-exists
        ├── BackupInvalid          backup-invalid
        ├── BackupRefused          backup-refused
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
    FormatUnclear,
    FunctionFailed,
    JsonMalformed,
    PropertyInvalid,
    SchemaInvalid,
    TextInvalid,
    XmlForbidden,
    XmlMalformed,
)
from postroom.errors.definitions import (
    CobolInvalid,
    CollectionUnknown,
    CompileFailed,
    CompilerMissing,
    DefinitionError,
    DefinitionUnknown,
    DescriptionInvalid,
    EventsOnTheWay,
    FileLineInvalid,
    FileUnreadable,
    FileUnwritable,
    FlowInvalid,
    FormInvalid,
    FunctionUnknown,
    LanguageUnknown,
    NameInvalid,
    NameTaken,
    ProgramInvalid,
    QueueInUse,
    QueueNeeded,
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
    LibraryMissing,
    OutboxUnknown,
    OutputFailed,
    SparkUnavailable,
    WorkerUnavailable,
)
from postroom.errors.gateways import (
    ArrivalRefused,
    ArrivalTooEarly,
    GatewayError,
    GatewayExists,
    GatewayInUse,
    GatewayInvalid,
    GatewayUnknown,
    GatewayUnreachable,
)
from postroom.errors.messages import (
    KeyInvalid,
    MessageCorrupt,
    MessageError,
    MessageGone,
    MessageNotWaiting,
    MessageUnknown,
    MessageUnsound,
    NotAllowed,
    PrincipalError,
    PrincipalInUse,
    PrincipalRefused,
    RedriveRefused,
    RightMissing,
    TokenRefused,
)
from postroom.errors.queues import (
    AreaShort,
    LeaseOver,
    PasswordMissing,
    PasswordNeeded,
    PasswordWrong,
    QueueError,
    QueueFull,
    QueueHeld,
    QueueLocked,
    QueueNotSingle,
    QueueOwned,
    QueueUnknown,
    SourceHeld,
    SourceUnknown,
)
from postroom.errors.root import (
    ArgumentInvalid,
    Happened,
    PostroomError,
)
from postroom.errors.servers import (
    AnswerLost,
    ClientSlow,
    EntryInvalid,
    ListenRefused,
    MethodUnknown,
    NotRemote,
    RequestHeadTooLarge,
    RequestInvalid,
    RequestRefused,
    RequestTooLarge,
    ResourceUnknown,
    ServerError,
    ServerExposed,
    ServerFailed,
    ServerStopping,
    ServerUnreachable,
    TooManyRequests,
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
    TableUnknown,
)
from postroom.errors.stores import (
    ArchiveDamaged,
    ArchiveMissing,
    BackupExists,
    BackupInvalid,
    BackupRefused,
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
from postroom.errors.streams import (
    StreamCheckpoint,
    StreamError,
    StreamFailed,
    StreamPackageMissing,
    StreamUnknown,
)


def every_error() -> tuple[type[PostroomError], ...]:
    """All concrete errors by code; the reference page and the tests iterate over them."""
    classes: list[type[PostroomError]] = [PostroomError]
    for kind in classes:
        classes.extend(kind.__subclasses__())  # which the loop then comes to
    return tuple(sorted((kind for kind in classes if kind.code), key=lambda kind: kind.code))


def advice_of(code: str) -> str:
    """What to do about an error with this code; empty if there is no advice."""
    return next((kind.advice for kind in every_error() if kind.code == code), "")


__all__ = [
    "AnswerLost",
    "ArchiveDamaged",
    "ArchiveMissing",
    "AreaShort",
    "ArgumentInvalid",
    "ArrivalRefused",
    "ArrivalTooEarly",
    "BackupExists",
    "BackupInvalid",
    "BackupRefused",
    "BodyError",
    "BodyMismatch",
    "BodyTooLarge",
    "CheckTooShort",
    "ClientSlow",
    "CobolInvalid",
    "CollectionUnknown",
    "CommitUnknown",
    "CompileFailed",
    "CompilerMissing",
    "DefinitionError",
    "DefinitionUnknown",
    "DescriptionInvalid",
    "DossierUnknown",
    "EngineError",
    "EntityExists",
    "EntityUnknown",
    "EntryInvalid",
    "EntryRefused",
    "EventInvalid",
    "EventRefused",
    "EventsOnTheWay",
    "FieldRefused",
    "FileLineInvalid",
    "FileUnreadable",
    "FileUnwritable",
    "FlowInvalid",
    "FolderUnsafe",
    "FormInvalid",
    "FormatUnclear",
    "FunctionFailed",
    "FunctionUnknown",
    "GatewayError",
    "GatewayExists",
    "GatewayInUse",
    "GatewayInvalid",
    "GatewayUnknown",
    "GatewayUnreachable",
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
    "LeaseOver",
    "LibraryMissing",
    "ListenRefused",
    "MessageCorrupt",
    "MessageElsewhere",
    "MessageError",
    "MessageGone",
    "MessageNotWaiting",
    "MessageUnknown",
    "MessageUnsound",
    "MethodUnknown",
    "NameInvalid",
    "NameTaken",
    "NodeDown",
    "NodeUnfit",
    "NodeUnknown",
    "NotAllowed",
    "NotInSphere",
    "NotRemote",
    "OutboxUnknown",
    "OutputFailed",
    "ParticipantInDoubt",
    "PasswordMissing",
    "PasswordNeeded",
    "PasswordWrong",
    "PostroomError",
    "PrincipalError",
    "PrincipalInUse",
    "PrincipalRefused",
    "ProgramInvalid",
    "PropertyInvalid",
    "QueryExpired",
    "QueryOvertaken",
    "QueryTooLarge",
    "QueueError",
    "QueueFull",
    "QueueHeld",
    "QueueInUse",
    "QueueLocked",
    "QueueNeeded",
    "QueueNotSingle",
    "QueueOwned",
    "QueueUnknown",
    "QueueWatched",
    "RedriveRefused",
    "RequestHeadTooLarge",
    "RequestInvalid",
    "RequestRefused",
    "RequestTooLarge",
    "ResourceUnknown",
    "RightMissing",
    "RoomForked",
    "RoomInUse",
    "RoomMissing",
    "RoomReentered",
    "SchemaInvalid",
    "SchemaMalformed",
    "ServerError",
    "ServerExposed",
    "ServerFailed",
    "ServerStopping",
    "ServerUnreachable",
    "SlicingInUse",
    "SourceHeld",
    "SourceUnknown",
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
    "StreamCheckpoint",
    "StreamError",
    "StreamFailed",
    "StreamPackageMissing",
    "StreamUnknown",
    "TableUnknown",
    "TextInvalid",
    "TokenRefused",
    "TooManyRequests",
    "TransitionRefused",
    "TryExpired",
    "TypeInvalid",
    "TypeUnknown",
    "UrlInvalid",
    "WorkerUnavailable",
    "XmlForbidden",
    "XmlMalformed",
    "advice_of",
    "every_error",
]
