"""Templates: every value is escaped, and how times, ages, counts and keys are written on pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from postroom.interfaces.web import wording
from postroom.limits import NAMES_SHOWN

_HERE = Path(__file__).parent
MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
STATIC: Mapping[str, bytes] = {
    file.name: file.read_bytes() for file in sorted((_HERE / "static").iterdir()) if file.suffix in MEDIA_TYPES
}
_DIGESTS = {name: blake2b(content, digest_size=6).hexdigest() for name, content in STATIC.items()}


def rendered(template: str, context: Mapping[str, Any]) -> bytes:
    """Render a page; lone surrogates, which UTF-8 cannot encode, are shown as escapes."""
    return ENVIRONMENT.get_template(template).render(context).encode(errors="backslashreplace")


def static_address(base: str, name: str) -> str:
    """The address of a static file; it changes with the content, so that browsers may cache it."""
    return f"{base}/static/{_DIGESTS[name]}/{name}"


# --- how things are written ---


def count(number: int) -> str:
    """
    >>> count(1204)
    '1,204'
    """
    return f"{number:,}"


def counted(number: int, noun: str) -> str:
    """A number with its noun.

    >>> counted(1, "message"), counted(1204, "entry"), counted(0, "day"), counted(2, "process")
    ('1 message', '1,204 entries', '0 days', '2 processes')
    """
    if number == 1:
        return f"1 {noun}"
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return f"{count(number)} {noun[:-1]}ies"
    return f"{count(number)} {noun}{'es' if noun.endswith(('s', 'x', 'z', 'ch', 'sh')) else 's'}"


def listed(names: Sequence[str]) -> str:
    """Names in a sentence; of many the first.

    >>> listed(["a"]), listed(["a", "b"]), listed([str(number) for number in range(12)])
    ('a', 'a, b', '0, 1, 2, 3, 4, 5, 6, 7 and 4 others')
    """
    more = len(names) - NAMES_SHOWN
    return ", ".join(names[:NAMES_SHOWN]) + (f" and {counted(more, 'other')}" if more > 0 else "")


def shortened(text: str, most: int) -> str:
    """A text without its end, between words if there are any, and with a sign that something is left out.

    >>> shortened("a leaking roof", 14), shortened("a leaking roof", 13), shortened("unbroken", 5)
    ('a leaking roof', 'a leaking…', 'unbr…')
    """
    if len(text) <= most:
        return text
    kept = text[:most]
    return f"{kept.rpartition(' ')[0] or kept[:-1]}\N{HORIZONTAL ELLIPSIS}"


def moment(time: datetime | str | None, now: datetime | None = None) -> str:
    """Today by the minute, before that with its day.

    >>> moment(datetime(2026, 11, 9, 8, 14, tzinfo=UTC), datetime(2026, 11, 16, 9, 0, tzinfo=UTC))
    '9 Nov 08:14'
    """
    parsed = _time(time)
    if parsed is None:
        return ""
    now = now or datetime.now(UTC)
    if parsed.date() == now.date():
        return f"{parsed:%H:%M}"
    year = "" if parsed.year == now.year else f"{parsed:%Y }"
    return f"{parsed.day} {parsed:%b} {year}{parsed:%H:%M}"


def time_element(time: datetime | str | None) -> Markup:
    """A time on a page, in UTC and labelled so."""
    parsed = _time(time)
    if parsed is None:
        return Markup("")
    there = parsed.astimezone(UTC)
    return Markup('<time datetime="{}" title="{} UTC">{}</time>').format(
        there.isoformat(timespec="seconds"), f"{there:%Y-%m-%d %H:%M:%S}", moment(there)
    )


def seconds(since: datetime | str | None, until: datetime | str | None = None) -> float:
    begin, end = _time(since), _time(until) or datetime.now(UTC)
    return 0.0 if begin is None else max((end - begin).total_seconds(), 0.0)


def age(since: float | timedelta) -> str:
    """Two units at most.

    >>> age(3), age(1560), age(187_200), age(86_400 * 38)
    ('3 s', '26 min', '2 d 4 h', '38 d')
    """
    left = int(since.total_seconds() if isinstance(since, timedelta) else since)
    if left < 60:
        return f"{left} s"
    if left < 3600:
        return f"{left // 60} min"
    if left < 86_400:
        return f"{left // 3600} h" + (f" {left % 3600 // 60} min" if left % 3600 >= 60 else "")
    days, hours = left // 86_400, left % 86_400 // 3600
    return f"{days} d" + (f" {hours} h" if hours and days < 7 else "")


def age_step(since: float) -> int:
    """The unit of an age, 1 to 5: seconds, minutes, hours, days, weeks."""
    return next((step for step, most in enumerate((60, 3600, 86_400, 604_800), 1) if since < most), 5)


_HOLDS = {"full": "on hold", "input only": "takes no input", "output only": "gives nothing out"}


def hold_words(hold: str) -> str:
    """How a hold is said on pages; other words stay.

    >>> hold_words("full"), hold_words("input only"), hold_words("1 of 3 held")
    ('on hold', 'takes no input', '1 of 3 held')
    """
    return _HOLDS.get(hold, hold)


def key_parts(key: str) -> tuple[str, str]:
    """The block of a key, which is shown faint, and its tail."""
    block, dot, tail = key.partition(".")
    return (block + dot, tail) if dot else ("", key)


def _time(given: datetime | str | None) -> datetime | None:
    parsed = datetime.fromisoformat(given) if isinstance(given, str) else given
    return parsed.replace(tzinfo=UTC) if parsed is not None and parsed.tzinfo is None else parsed


def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "count": count,
        "counted": counted,
        "moment": time_element,
        "age": age,
        "age_step": age_step,
        "key_parts": key_parts,
        "hold_words": hold_words,
        "shortened": shortened,
        "told": wording.told,
        "advice": wording.advice,
    }
    made.filters["in_marks"] = lambda name, marks: marks.get(name)
    made.globals |= {"seconds": seconds}
    return made


ENVIRONMENT = _environment()
