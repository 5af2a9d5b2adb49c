"""Rooms as tables and streams of Spark, for programs of users' own: ``format("postroom")``."""
