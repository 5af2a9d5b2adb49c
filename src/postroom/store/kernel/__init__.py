"""Queues, messages, the journal and the transaction that changes them together."""
