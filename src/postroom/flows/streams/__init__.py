"""Streams from outside: micro-batches of Spark between a source and a sink, through the graph of a room."""
