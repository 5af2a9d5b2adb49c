"""Maintenance of a store: retention and backups."""
