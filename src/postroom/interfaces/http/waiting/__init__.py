"""Requests that last: for a message, for changes, for the end of a sphere; and messages on their way to a client."""
