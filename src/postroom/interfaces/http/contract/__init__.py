"""What a server and its client agree on: the table of operations, and how each thing is written in JSON."""
