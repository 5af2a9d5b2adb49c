"""The command line: ``postroom [--room URL] COMMAND … [--json]``."""
