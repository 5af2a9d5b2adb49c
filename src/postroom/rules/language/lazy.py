"""Regular expressions compiled at first use.

With all the letters that XML names may have, one takes some ten milliseconds: too long for a command that reads no
rule.
"""

from __future__ import annotations

import re
from typing import Any, cast


class _Lazy:
    def __init__(self, pattern: str, flags: int) -> None:
        self._given = (pattern, flags)

    def __getattr__(self, name: str) -> Any:
        compiled = re.compile(*self._given)
        # From now on the methods are found here, at once.
        self.__dict__.update(
            {method: getattr(compiled, method) for method in dir(compiled) if not method.startswith("_")}
        )
        return getattr(compiled, name)


def lazy(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Like ``re.compile``, at first use."""
    return cast(re.Pattern[str], _Lazy(pattern, flags))
