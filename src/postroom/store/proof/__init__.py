"""Verification of a store: replaying the journal, comparing, and repairing."""
