"""Rooms as tables and streams of Spark, for users' programs: ``format("postroom")``."""
