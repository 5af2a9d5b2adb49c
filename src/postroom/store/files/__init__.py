"""The files of a room on SQLite: rights, locks, and waking of waiting processes."""
