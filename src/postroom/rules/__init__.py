"""Demaq: declarative rules over queues, properties, slices."""
