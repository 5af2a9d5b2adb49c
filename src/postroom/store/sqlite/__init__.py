"""The store on SQLite: one file, no server, every commit on disk before it returns.

It uses ``apsw``, which includes SQLite: the same version on every machine, and half the cost per statement.
"""
