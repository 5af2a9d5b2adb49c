"""The command that editors start: lsp."""

from __future__ import annotations

import sys

import typer


def lsp() -> None:
    """Serve an editor, by the Language Server Protocol.

    It reads requests on standard input and answers on standard output. For .qdl, .demaq, .flow and .form files:
    problems as you type, what a name is, where it is defined, which names there are. It uses the readers that load the
    files, and needs no room.

    \b
    Example:
      postroom lsp
    """
    from postroom.interfaces.lsp.server import Server

    raise typer.Exit(Server(sys.stdin.buffer, sys.stdout.buffer).run())
