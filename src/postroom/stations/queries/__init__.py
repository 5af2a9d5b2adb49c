"""Queries by example over one node or all of them, their images, and SQL over these."""
