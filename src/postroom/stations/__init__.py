"""Stations: forms, mail, and queries by example across nodes (after "A System for Managing Structured Messages")."""
