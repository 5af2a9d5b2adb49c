"""The language server: editors ask it about definition files."""
