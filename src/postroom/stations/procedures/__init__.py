"""Automatic procedures: sketches of the messages to collect, of what to write on them, and of where they go."""
