"""The tables of each capability."""
