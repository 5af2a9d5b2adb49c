"""The steps of an engine: claim messages, evaluate them, commit what follows."""
