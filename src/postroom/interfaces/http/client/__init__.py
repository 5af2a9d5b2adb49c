"""A room behind a server, with the parts of an open room."""
