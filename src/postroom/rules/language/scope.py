"""Variable scopes: the visible bindings, innermost first, and the uses of each."""

from __future__ import annotations

from dataclasses import dataclass, field

from postroom.rules.language.body import Span
from postroom.rules.language.tokens import Token


@dataclass(slots=True)
class Bound:
    """A let or for variable whose uses are recorded."""

    kind: str
    name: str
    value: Span
    outer: bool  # nothing but the message itself is the context of its value
    uses: list[Span] = field(default_factory=list)
    end: int = 0
    regrouped: bool = False


class Scope:
    def __init__(self) -> None:
        self._visible: dict[str, list[Bound | None]] = {}  # None is a variable that is not followed

    def bind(self, bound: Bound) -> None:
        self._visible.setdefault(bound.name, []).append(bound)

    def hide(self, names: list[str]) -> None:
        """From here on, these names are variables whose uses are not recorded."""
        for name in names:
            self._visible.setdefault(plain(name), []).append(None)

    def forget(self, names: list[str]) -> None:
        for name in names:
            self._visible[plain(name)].pop()

    def use(self, token: Token) -> None:
        known = self._visible.get(plain(token.text))
        if known and known[-1] is not None:
            known[-1].uses.append(Span(token.start, token.end))


def plain(name: str) -> str:
    """A variable's name without ``$``; in no namespace, ``Q{}x`` is ``x``."""
    name = name.removeprefix("$")
    return name[name.index("}") + 1 :] if name.startswith("Q{") and not name[2 : name.index("}")].strip() else name
