"""The files of a room on SQLite: who may use them, what keeps them together, how waiting processes are woken."""
