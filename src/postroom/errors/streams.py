"""Errors of external streams."""

from __future__ import annotations

from postroom.errors.root import PostroomError


class StreamError(PostroomError):
    """A stream cannot run, or cannot continue."""


class StreamCheckpoint(StreamError):
    code = "stream-checkpoint"
    template = "stream {stream}: {why}; nothing was read"
    advice = "Give the folder of the checkpoint that belongs to this room, or start over with `--restart`."


class StreamFailed(StreamError):
    code = "stream-failed"
    template = "stream {stream} has stopped: {why}; started again, it goes on with batch {batch}"
    advice = "Correct what the message names, and start `postroom stream` again: it goes on where it was."


class StreamPackageMissing(StreamError):
    code = "stream-package-missing"
    template = "Spark has no {kind} here: start again with --packages {package}"
    advice = "Start `postroom stream` with the `--packages` of the message; Spark fetches it once."


class StreamUnknown(StreamError):
    code = "stream-unknown"
    template = "{what}"
    advice = "Name a space of a stream, or load a graph with `space … from …`; see docs/guide/streams.md."
