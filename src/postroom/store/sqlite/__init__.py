"""The store on SQLite: one file, no server, every commit on disk before it returns.

Through ``apsw``, which carries its own SQLite: the same version on every machine, and half the cost of a statement.
"""
