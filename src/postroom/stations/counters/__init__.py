"""Counters, which connect queues and stations."""
