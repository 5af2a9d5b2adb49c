"""Users, their grants and tokens, and schedules: for operators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from postroom.errors import EntryInvalid
from postroom.interfaces.web.page import Again, Goto, Page, Undo
from postroom.interfaces.web.rendering import counted, moment
from postroom.interfaces.web.visit import Visit
from postroom.model.moment import to_datetime
from postroom.model.rights import EVERYTHING, OPERATE, VERBS

PATH = "/access"
GIVE_UP = "Withdraw, and be no operator any more"


def show(visit: Visit) -> Mapping[str, Any]:
    return _context(visit, None)


def _context(visit: Visit, token: str | None) -> Mapping[str, Any]:
    names, stations = visit.room.flows.principals(), visit.room.stations.all()
    return {
        "names": names,
        "users": [name for name in names if name not in stations],
        "stations": [name for name in names if name in stations],
        "grants": visit.room.access.grants(),
        "tokens": visit.room.access.tokens(),
        "verbs": VERBS,
        "operate": OPERATE,
        "give_up": GIVE_UP,
        "is_last": sum(grant.verb == OPERATE for grant in visit.room.access.grants()) == 1,
        "token": token,
        "schedules": [(schedule, to_datetime(schedule.due)) for schedule in visit.room.consumers.schedules()],
    }


def grant(visit: Visit) -> Goto:
    principal, verb = visit.needed("principal", "User"), visit.needed("verb", "May")
    object = visit.needed("object", "What")
    _known(visit, principal, "User", "principal")
    is_new = visit.room.access.grant(principal, verb, object)
    visit.callers.refresh()
    said = f"{principal} {verb} {object}: {'granted' if is_new else 'was granted already'}."
    return Goto(visit.here(), f"{said}{_of_nothing(visit, verb, object)}")


def _of_nothing(visit: Visit, verb: str, object: str) -> str:
    """That there is no such station or queue, which may be a slip; a grant may also come before what it is for."""
    if object == EVERYTHING:
        return ""
    if VERBS[verb] == "station" and object not in visit.room.stations.all():
        return f" There is no station {object} yet."
    if VERBS[verb] == "queue" and all(len(names) == 1 for names in visit.room.access.names(object)):
        return f" There is no queue {object} yet."  # one that is there has a path, too
    return ""


def withdraw(visit: Visit) -> Goto:
    """Withdraw a grant; of one's own right to do so only by the button that says what it means."""
    what = _grant_of(visit)
    if what[:2] == (visit.user, OPERATE):
        why = f"you would no longer be an operator: press “{GIVE_UP}”"
        raise EntryInvalid(where="Withdraw", why=why)
    is_gone = _withdrawn(visit, what)
    fields = {"do": "grant", **dict(zip(("principal", "verb", "object"), what, strict=True))}
    undo = Undo("Grant it again", visit.here(), tuple(fields.items())) if is_gone else None
    return Goto(visit.here(), f"{' '.join(what)}: {'withdrawn' if is_gone else 'there was no such grant'}.", undo)


def give_up(visit: Visit) -> Goto:
    """Withdraw one's own right to operate. The way back is another operator's, or that of the machine of the room."""
    what = _grant_of(visit)
    _withdrawn(visit, what)
    return Goto(visit.address("/you"), f"{' '.join(what)}: withdrawn.")


def _grant_of(visit: Visit) -> tuple[str, str, str]:
    return visit.needed("principal"), visit.needed("verb"), visit.needed("object")


def _withdrawn(visit: Visit, what: tuple[str, str, str]) -> bool:
    is_gone = visit.room.access.withdraw(*what)
    visit.callers.refresh()
    return is_gone


def create_token(visit: Visit) -> Again:
    """Create a token. It is shown once, in the response only, never in an address."""
    days = visit.form.get("days", "").strip()
    if days and not (days.isascii() and days.isdigit() and len(days) < 6):
        raise EntryInvalid(where="days", why="a whole number of days is expected")
    verbs = visit.form.get("verbs", "").split() or None
    principal = visit.needed("principal", "User")
    _known(visit, principal, "User", "principal")
    token = visit.room.access.create_token(
        principal, visit.needed("name"), verbs=verbs, days=int(days) if days else None
    )
    return Again(_context(visit, token), 200)


def revoke_token(visit: Visit) -> Goto:
    visit.room.access.revoke_token(visit.needed("id"))
    visit.callers.refresh()
    return Goto(visit.here(), f"Revoked {visit.needed('id')}.")


def add_user(visit: Visit) -> Goto:
    """Add a user, who may sign in; rights are granted separately."""
    name = visit.needed("name")
    visit.room.flows.add_principal(name, _password(visit))
    return Goto(visit.here(), f"{name} is registered, and may do nothing yet: grant what is needed.")


def set_password(visit: Visit) -> Goto:
    """Change the password of a user, which ends the user's sessions."""
    name, password = visit.needed("name"), _password(visit)
    _known(visit, name)
    visit.room.flows.add_principal(name, password, replace=True)
    return Goto(visit.here(), f"{name} has another password.")


def remove_user(visit: Visit) -> Goto:
    name = visit.needed("name")
    _known(visit, name)
    visit.room.flows.remove_principal(name)
    visit.callers.refresh()
    return Goto(visit.here(), f"{name} was removed.")


def _password(visit: Visit) -> str:
    password = visit.form.get("password", "")
    if not password:
        raise EntryInvalid(where="password", why="it is missing")
    return password


def _known(visit: Visit, user: str, label: str = "Name", name: str = "name") -> None:
    if user not in visit.room.flows.principals():
        raise EntryInvalid(where=label, why=f"there is no user {user[:60]!r}", name=name)


def schedule(visit: Visit) -> Goto:
    """Add a schedule: a message at each time of a cron line."""
    made = visit.room.consumers.schedule(
        visit.needed("name"),
        visit.needed("cron"),
        visit.needed("queue"),
        body=visit.form.get("body", "").replace("\r\n", "\n"),
        zone=visit.form.get("zone", "").strip() or "UTC",
    )
    return Goto(visit.here(), f"{made.name} is sent next at {moment(to_datetime(made.due))} UTC.")


def end_sessions(visit: Visit) -> Goto:
    name = visit.needed("principal")
    return Goto(visit.here(), f"Ended {counted(visit.room.access.end_sessions(name), 'session')} of {name}.")


def unschedule(visit: Visit) -> Goto:
    visit.room.consumers.unschedule(visit.needed("name"))
    return Goto(visit.here(), f"Removed the schedule {visit.needed('name')}.")


PAGE = Page(
    PATH,
    "access.html",
    show,
    "operate",
    None,
    {
        "grant": grant,
        "withdraw": withdraw,
        "give-up": give_up,
        "token": create_token,
        "revoke": revoke_token,
        "sign-out": end_sessions,
        "unschedule": unschedule,
        "schedule": schedule,
        "add-user": add_user,
        "password": set_password,
        "remove-user": remove_user,
    },
    label="Access",
    group="operators",
)
