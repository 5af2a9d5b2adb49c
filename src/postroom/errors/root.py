"""What every error has: a code, a text with facts, whether the change happened, and advice."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, Literal

Happened = Literal["no", "yes", "unknown"]


class PostroomError(Exception):
    """The base class. Keyword arguments fill the template and are available as ``error.facts``."""

    code: ClassVar[str] = ""
    template: ClassVar[str] = ""
    advice: ClassVar[str] = ""  # what to do about it, in one or two sentences
    happened: ClassVar[Happened] = "no"  # whether anything was changed
    status: ClassVar[str] = "99"

    facts: dict[str, Any]  # what its text names

    def __init_subclass__(cls) -> None:
        """Users import all errors from ``postroom.errors``, whichever file defines them."""
        if cls.__module__.startswith(f"{__package__}."):
            cls.__module__ = __package__

    def __init__(self, **facts: Any) -> None:
        self.facts = facts
        text = self.template.format(**facts)
        super().__init__(text.encode(errors="backslashreplace").decode())  # what it quotes may be no text at all

    def __reduce__(self) -> tuple[Any, ...]:
        # Errors cross process borders by their facts; the default would lose the keyword arguments.
        return (partial(type(self), **self.facts), ())


class ArgumentInvalid(PostroomError):
    code = "argument-invalid"
    template = "{argument}: {why}"
    advice = "Give what the message asks for; `postroom COMMAND --help` shows an example."
