"""The language server, for editors of definition files."""
