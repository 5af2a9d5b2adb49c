"""``python -m postroom`` is the command line."""

from postroom.interfaces.cli.main import main

main()
