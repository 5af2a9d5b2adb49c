"""Errors of definitions: what was to be loaded is wrong, and those in force are unchanged."""

from __future__ import annotations

from postroom.errors.root import PostroomError


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
        "{space} cannot be removed or get another type: {count} event(s) in {source} may be on their way to it. "
        "Route them first (postroom run), or load with --drop"
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
        "{queue} cannot be removed: it has {count} unprocessed message(s). Receive them first, or keep the queue{where}"
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
        "slicing {slicing} cannot {how}: its slice {value!r} has messages. Reset its slices first, "
        "or give them up with: postroom load --drop"
    )


class TryExpired(DefinitionError):
    code = "try-expired"
    template = "not all messages could be tried in {seconds} s; use a longer --timeout, or fewer messages with --since"


class TypeInvalid(DefinitionError):
    code = "type-invalid"
    template = "type {type}: {why}"


class TypeUnknown(DefinitionError):
    code = "type-unknown"
    template = "no message type is named {type!r}{nearest}"
