"""The command line: ``postroom``, or ``python -m postroom``."""

from __future__ import annotations

import signal


def main() -> None:
    """Run one command. While its modules load, Ctrl-C ends it at once and without a traceback."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from postroom.interfaces.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
