"""The help of ``postroom``: all commands, grouped by purpose."""

from __future__ import annotations

from typing import Any

from postroom.interfaces.cli.suggestions import SuggestingGroup

#: In the order of the help. A group of commands stands where most of them belong.
PANELS: dict[str, tuple[str, ...]] = {
    "Set up a room": ("queue", "source", "principal", "node", "station", "login", "logout"),
    "Send and receive": (
        *(
            "send",
            "receive",
            "done",
            "release",
            "extend",
            "fail",
            "publish",
            "subscribe",
            "unsubscribe",
            "connect",
            "disconnect",
        ),
        *("form", "create", "copy", "modify", "mail", "ship", "take-back", "get", "dossier"),
    ),
    "Find and follow": (
        *("count", "accept", "peek", "info", "history", "show", "locate", "trace", "journal", "export"),
        *("slice", "why"),
        *("list", "next", "query", "table", "sql", "waiting", "leases", "spheres"),
    ),
    "Define what happens": (
        "schedule",
        *(
            "load",
            "collection",
            "type",
            "procedure",
            "counter",
            "catalog",
            "hierarchy",
            "graph",
            "subscriptions",
            "explain",
            "try",
            "lsp",
        ),
    ),
    "Run": ("run", "work", "stream", "cobol", "compensate", "prepare"),
    "Hold, mend, undo": ("disable", "enable", "outbox", "sphere", "mend", "purge", "move", "redrive"),
    "Let others in": ("serve", "gateway", "user", "token", "grant", "why-not"),
    "Look after it": ("top", "doctor", "verify", "backup", "restore", "archive", "retention", "sweep"),
}
_PANEL = {name: panel for panel, names in PANELS.items() for name in names}
_PLACE = {name: place for place, name in enumerate(_PANEL)}


class Panels(SuggestingGroup):
    """A group whose help has a section for each panel. Plain text, because it is also a page of the reference."""

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(self.commands, key=lambda name: _PLACE.get(name, len(_PLACE)))

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        names = self.list_commands(ctx)
        width = max(map(len, names))
        for panel in (*PANELS, "Other commands"):
            rows = [
                (name.ljust(width), self.commands[name].get_short_help_str(formatter.width - 6 - width))
                for name in names
                if _PANEL.get(name, "Other commands") == panel
            ]
            if rows:
                with formatter.section(panel):
                    formatter.write_dl(rows)
