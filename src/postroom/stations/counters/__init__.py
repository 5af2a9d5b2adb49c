"""Counters, where queues and stations meet."""
