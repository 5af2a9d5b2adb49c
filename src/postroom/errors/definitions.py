"""Errors in definitions: the load is refused, and the definitions in force are unchanged."""

from __future__ import annotations

from postroom.errors.root import PostroomError


class DefinitionError(PostroomError):
    """A definition is wrong; the definitions in force are unchanged."""


class CollectionUnknown(DefinitionError):
    code = "collection-unknown"
    template = "there is no collection {name}; create it with: create collection {name}"
    advice = "Find its name with `postroom catalog`, or load a program that creates it."


class DefinitionUnknown(DefinitionError):
    code = "definition-unknown"
    template = "there is no {name} (postroom catalog lists everything){nearest}"
    advice = "Find its name with `postroom catalog`, or load the file that defines it."


class CobolInvalid(DefinitionError):
    """A COBOL program has a statement that the precompiler does not support. ``problems`` lists all of them."""

    code = "cobol-invalid"
    template = "{where}: {what} [{rule}]{more}"
    advice = "Correct the given place; `docs/guide/cobol.md` lists what the precompiler supports."


class CompileFailed(DefinitionError):
    code = "compile-failed"
    template = "{program} did not compile {file}:\n{output}"
    advice = "Correct the lines that the compiler names; they are those of your own file."


class CompilerMissing(DefinitionError):
    code = "compiler-missing"
    template = "{program} is not on the PATH, and {what} needs it"
    advice = "Install it: `apt-get install gnucobol` has `cobc` and brings a C compiler."


class DescriptionInvalid(DefinitionError):
    """A queue description breaks a rule. ``problems`` holds every one found, in the order of the text."""

    code = "description-invalid"
    template = "{where}: {what} [{rule}]{more}"
    advice = "Correct the given line, and try with `postroom load --check FILE.qdl`."


class EventsOnTheWay(DefinitionError):
    code = "events-on-the-way"
    template = (
        "{space} cannot be removed or get another type: {count} event(s) in {source} may still go to it. "
        "Route them first (postroom run), or load with --drop"
    )
    advice = "Run the engine and load again; or load with `--drop`, and the events are lost."


class FileLineInvalid(DefinitionError):
    """A row of a file to be sent is not a valid message."""

    code = "file-line-invalid"
    template = "{file}, line {line}: {why}"
    advice = "Correct the line and send the file again: what was sent before it is not sent twice."


class FileUnreadable(DefinitionError):
    code = "file-unreadable"
    template = "cannot read {file}: {why}"
    advice = "Check the path and its permissions."


class FileUnwritable(DefinitionError):
    code = "file-unwritable"
    template = "cannot write {file}: {why}"
    advice = "Check the directory, its permissions and the space on its disk; no file was left behind."


class LanguageUnknown(DefinitionError):
    code = "language-unknown"
    template = "{file}: no language has the suffix {suffix!r}; known are: {known}"
    advice = "Give the file the suffix of its language."


class NameInvalid(DefinitionError):
    code = "name-invalid"
    template = "{name!r} cannot be the name of a queue: {why}"
    advice = "Choose another name, as the message says."


class NameTaken(DefinitionError):
    code = "name-taken"
    template = "the name {name} is taken by {owner}; choose another, or remove that first"
    advice = "Choose another name, or remove what has this one."


class FlowInvalid(DefinitionError):
    """A flow breaks a rule of its language, or an arc does not fit its spaces. ``problems`` holds every one found."""

    code = "flow-invalid"
    template = "{where}: {what} [{rule}]{more}"
    advice = "Correct the given line, and try with `postroom load --check FILE.flow`."


class FormInvalid(DefinitionError):
    """A form breaks a rule. ``problems`` holds every one found, in the order of the text."""

    code = "form-invalid"
    template = "{where}: {what} [{rule}]{more}"
    advice = "Correct the given place; `postroom load --check FILE.form` lists all problems."


class FunctionUnknown(DefinitionError):
    code = "function-unknown"
    template = (
        "{where}: no function is registered as {function}; write it in Python under @postroom.function, "
        "and name its module in POSTROOM_FUNCTIONS"
    )
    advice = "Name the module that has it in `POSTROOM_FUNCTIONS`, and put its folder on `PYTHONPATH`."


class ProgramInvalid(DefinitionError):
    """A rule program breaks a rule of its language. ``problems`` holds every one found, in the order of the text."""

    code = "program-invalid"
    template = "{where}: {what} [{rule}]{more}"
    advice = "Correct the given line; `postroom load --check FILE.demaq` lists all problems."


class QueueInUse(DefinitionError):
    code = "queue-in-use"
    template = (
        "{queue} cannot be removed: it has {count} unprocessed message(s). Receive them first, or keep the queue{where}"
    )
    advice = (
        "Receive the messages, or keep the queue in the file that you load. A `.qdl` load replaces the room's whole "
        "description; for another tree use another room: `--room other.db`."
    )


class QueueNeeded(DefinitionError):
    code = "queue-needed"
    template = "{queue} cannot be removed: it is needed by {users}"
    advice = (
        "Load what needs it, changed, together with the file that leaves it out; remove the schedule "
        "(`postroom schedule remove NAME`); or keep the queue."
    )


class QueueWatched(DefinitionError):
    code = "queue-watched"
    template = (
        "the messages of {queue} are taken by {watcher}, so {other} cannot take them too; "
        "put a queue or a space in between"
    )
    advice = "Put a queue or a space between the two readers."


class SchemaMalformed(DefinitionError):
    code = "schema-malformed"
    template = "{file} is not a usable schema: {why}"
    advice = "Correct the schema. What it includes must be files beside it, which are loaded with it."


class SlicingInUse(DefinitionError):
    code = "slicing-in-use"
    template = (
        "slicing {slicing} cannot {how}: its slice {value!r} has messages. Reset its slices first, "
        "or give them up with: postroom load --drop"
    )
    advice = "Let rules reset the slices, or load with `--drop` to give up their messages."


class TryExpired(DefinitionError):
    code = "try-expired"
    template = "not all messages could be tried in {seconds} s; use a longer --timeout, or fewer messages with --since"
    advice = "Give it more time with `--timeout`, or fewer messages with `--since`."


class TypeInvalid(DefinitionError):
    code = "type-invalid"
    template = "type {type}: {why}"
    advice = "Correct the type, as the message says."


class TypeUnknown(DefinitionError):
    code = "type-unknown"
    template = "no message type is named {type!r}{nearest}"
    advice = "Find it with `postroom catalog`, or load the form that defines it."
