"""The steps of an engine: claim messages, evaluate them, commit their effects."""
