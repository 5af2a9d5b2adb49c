"""The pages of a server: an ASGI application below ``/web``. Rights are checked here, before a page is made."""

from __future__ import annotations

import logging
import secrets
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from postroom.errors import PostroomError, PrincipalRefused, ResourceUnknown, ServerFailed, TooManyRequests
from postroom.interfaces.http.access import Caller, Callers
from postroom.interfaces.http.contract import problems
from postroom.interfaces.http.handling import requests
from postroom.interfaces.http.handling.requests import Disconnected, MethodWrong
from postroom.interfaces.http.handling.responses import Header, Send
from postroom.interfaces.http.waiting.events import Inside, Tail
from postroom.interfaces.web import live, sessions
from postroom.interfaces.web.addresses import ROOT, address, pairs
from postroom.interfaces.web.asking import Askings
from postroom.interfaces.web.headers import check_origin, headers
from postroom.interfaces.web.operating.history import Counting
from postroom.interfaces.web.page import Again, File, Goto, Notice, Page
from postroom.interfaces.web.registry import PAGES
from postroom.interfaces.web.rendering import MEDIA_TYPES, STATIC, counted, rendered, static_address
from postroom.interfaces.web.visit import THEMES, Asked, Scope, Visit
from postroom.limits import NOTICES_MAX, PAGE_BYTES_MAX
from postroom.room import Postroom

log = logging.getLogger("postroom.web")
_HTML = "text/html; charset=utf-8"


class Site:
    """The pages of a room; made in the serving event loop."""

    def __init__(self, room: Postroom, callers: Callers, tail: Tail, inside: Inside) -> None:
        self._callers = callers
        self._tail = tail
        self._inside = inside
        self._sessions = sessions.Sessions(room)
        self._askings = Askings()
        self._counting = Counting(room.store)
        self._notices: OrderedDict[str, Notice] = OrderedDict()

    def has(self, path: str) -> bool:
        return path == "/" or path == ROOT or path.startswith(f"{ROOT}/")

    def close(self, seconds: float) -> bool:
        """Stop background work; returns whether it ended in this time."""
        self._counting.close()
        return self._askings.close(seconds)

    async def __call__(self, scope: Scope, path: str, receive: Any, send: Send) -> None:
        if path == "/":
            await _redirect(send, scope.get("root_path", "") + ROOT + "/")
            return
        if path.startswith(f"{ROOT}/static/"):
            await _static(send, path, scope["method"])
            return
        asked: Asked | None = None
        try:
            asked = Asked(scope, path)
            await self._serve(asked, receive, send)
        except Disconnected:
            return
        except MethodWrong as wrong:
            await _answer(send, 405, b"", headers(_HTML, (b"allow", ", ".join(wrong.allowed).encode())))
        except PostroomError as error:
            await self._fail(send, scope, asked, error)
        except Exception:
            incident = secrets.token_hex(4)
            log.exception("incident %s at %s %s", incident, scope["method"], ascii(scope["path"])[:200])
            await self._fail(send, scope, asked, ServerFailed(incident=incident))

    async def _serve(self, asked: Asked, receive: Any, send: Send) -> None:
        if asked.method == "POST":
            check_origin(asked.scheme, asked.head)
            body = b"".join([piece async for piece in requests.pieces(receive, PAGE_BYTES_MAX)])
            asked.said = pairs(body, "form")
        elif asked.method not in ("GET", "HEAD"):
            raise MethodWrong(["GET", "HEAD", "POST"])
        if asked.path == "/sign-in":
            await self._sign_in(asked, send)
            return
        user = await self._inside(partial(self._sessions.user, asked.session)) if asked.session else None
        if user is None:
            await self._ask_to_sign_in(asked, send)
            return
        caller: Caller = await self._inside(partial(self._callers.named, user))
        if asked.path == "/sign-out" and asked.method == "POST":
            await self._inside(partial(self._sessions.end, asked.session))
            await _redirect(send, asked.to("/sign-in"), sessions.session_cookie("", asked.is_safe))
        elif asked.path == "/theme" and asked.method == "POST":
            theme = dict(asked.said).get("theme", "")
            there = asked.back(dict(asked.said).get("back", ""))
            await _redirect(send, there, sessions.theme_cookie(theme if theme in THEMES else "", asked.is_safe))
        elif asked.path == "/live" and asked.method == "GET":
            notice = self._notices.get(asked.session)
            places = notice.undo.places.values() if notice is not None and notice.undo is not None else ()
            await live.follow(
                asked, caller, self._callers, self._sessions, self._tail, self._inside, receive, send, set(places)
            )
        else:
            await self._page(asked, caller, send)

    # --- signing in ---

    async def _ask_to_sign_in(self, asked: Asked, send: Send) -> None:
        there = None if asked.path == "/" else address(asked.base, asked.path, {}, asked.query)
        if asked.method == "POST":
            is_page = any(page.pattern.fullmatch(asked.path) for page in PAGES)
            ended = partial(_signing_in, asked, None, "Your session has ended. Nothing was changed.")
            body = await self._inside(partial(ended, to=there if is_page else None))
            await _answer(send, 401, body, headers(_HTML, is_safe=asked.is_safe))
            return
        await _redirect(send, asked.to("/sign-in", to=there))

    async def _sign_in(self, asked: Asked, send: Send) -> None:
        if asked.method != "POST":
            body = await self._inside(partial(_signing_in, asked, None, None, asked.query.get("to")))
            await _answer(send, 200, body, headers(_HTML, is_safe=asked.is_safe))
            return
        fields = dict(asked.said)
        name = fields.get("name", "").strip()
        try:
            self._sessions.throttle.check(name, asked.address)
            async with self._sessions.at_once:
                begin = partial(self._sessions.begin, name, fields.get("password", ""), asked.address)
                session: str = await self._inside(begin)
        except (PrincipalRefused, TooManyRequests) as refused:
            log.warning("refused sign-in of %s from %s: %s", ascii(name)[:60], asked.address, refused.code)
            more = [problems.retry_after(refused)] if isinstance(refused, TooManyRequests) else []
            wrong = _why_not_signed_in(refused)
            body = await self._inside(partial(_signing_in, asked, name, wrong, fields.get("to")))
            await _answer(send, problems.status_of(type(refused)), body, headers(_HTML, *more, is_safe=asked.is_safe))
            return
        await _redirect(send, asked.back(fields.get("to", "")), sessions.session_cookie(session, asked.is_safe))

    # --- pages ---

    async def _page(self, asked: Asked, caller: Caller, send: Send) -> None:
        page, names = _routed(asked.path)
        visit = Visit(
            caller, self._callers, page, self._askings, asked.base, names, asked.query, asked.said, theme=asked.theme
        )
        visit.others = PAGES
        visit.is_again = "postroom-live" in asked.head  # the script asks for parts of a page again
        if visit.is_again:  # whether there is still a way back
            visit.notice = self._notices.get(asked.session)
        elif asked.method != "POST":
            visit.notice = self._notice(asked.session)
        status, made = await self._inside(partial(_made, visit, asked.method == "POST"))
        if asked.method == "POST" and status < 400:  # something else was done
            self._notices.pop(asked.session, None)
        if isinstance(made, Goto):
            if made.notice is not None:
                self._notices[asked.session] = Notice(made.notice, made.undo)
                while len(self._notices) > NOTICES_MAX:
                    self._notices.popitem(last=False)
            await _redirect(send, made.address)
        elif isinstance(made, File):
            kept = (b"content-disposition", f'attachment; filename="{made.name}"'.encode("ascii", "replace"))
            await _answer(send, status, made.content, headers(made.media_type, kept, is_safe=asked.is_safe))
        else:
            await _answer(send, status, made, headers(_HTML, is_safe=asked.is_safe))

    def _notice(self, session: str) -> Notice | None:
        """What was done before; it is kept for the next page if there is a way back."""
        notice = self._notices.pop(session, None)
        if notice is not None and notice.undo is not None:
            self._notices[session] = replace(notice, is_new=False)
        return notice

    async def _fail(self, send: Send, scope: Scope, asked: Asked | None, error: PostroomError) -> None:
        """Send an error page."""
        status = problems.status_of(type(error))
        base = scope.get("root_path", "") + ROOT
        context = _frame(base, asked.theme if asked else None) | {"error": error, "visit": None}
        more = [problems.retry_after(error)] if isinstance(error, TooManyRequests) else []
        await _answer(send, status, rendered("error.html", context), headers(_HTML, *more))


def _routed(path: str) -> tuple[Page[Visit], dict[str, str]]:
    for page in PAGES:
        match = page.pattern.fullmatch(path)
        if match is not None:
            return page, match.groupdict()
    return _NOWHERE, {"path": path.removeprefix("/")}


def _no_page(visit: Visit) -> Mapping[str, Any]:
    raise ResourceUnknown(method="GET", path=f"/{visit.names['path'][:200]}")


_NOWHERE = Page("/{path...}", "error.html", _no_page)  # what is at no address of a page


def _made(visit: Visit, is_action: bool) -> tuple[int, bytes | Goto | File]:
    """Run the action or show the page, in a thread, as the user."""
    page = visit.page
    with visit.acting():
        try:
            visit.seen = live.newest(visit.room)
            if page.right is not None:
                visit.require(page.right, page.of, visit.names)
            status, shown = 200, page.show(visit) if not is_action else _acted(visit)
            if isinstance(shown, Again):
                status, shown = shown.status, shown.context
        except PostroomError as error:
            return _refused(visit, error, is_action)
        if isinstance(shown, (Goto, File)):
            return status, shown
        return status, _drawn(visit, page.template, shown)


def _acted(visit: Visit) -> Any:
    action = visit.page.actions.get(visit.form.get("do", ""))
    if action is None:
        raise ResourceUnknown(method=f"the action {visit.form.get('do', '')[:60]!r} of", path=visit.page.path)
    return action(visit)


def _refused(visit: Visit, error: PostroomError, is_action: bool) -> tuple[int, bytes | Goto | File]:
    """The page with the error above it; or an error page."""
    log.warning("refused %s %s: %s", visit.user, visit.page.path, error.code)
    status = problems.status_of(type(error))
    visit.problem = error
    if is_action:
        try:
            if visit.page.right is not None:
                visit.require(visit.page.right, visit.page.of, visit.names)
            shown = visit.page.show(visit)
            if isinstance(shown, Again):
                status, shown = shown.status, shown.context
            if isinstance(shown, Mapping):
                return status, _drawn(visit, visit.page.template, shown)
        except PostroomError as again:
            visit.problem = error = again
    return status, _drawn(visit, "error.html", {"error": error})


def _drawn(visit: Visit, template: str, context: Mapping[str, Any]) -> bytes:
    return rendered(
        template, _frame(visit.base, visit.theme) | {"visit": visit, "navigation": _navigation(visit), **context}
    )


def _frame(base: str, theme: str | None) -> dict[str, Any]:
    return {"base": base, "theme": theme, "static": partial(static_address, base), "navigation": {}, "live": ()}


def _navigation(visit: Visit) -> dict[str, list[tuple[str, str, bool]]]:
    """By group: label, address, and whether it is the current page."""
    groups: dict[str, list[tuple[str, str, bool]]] = {}
    for page in visit.others:
        if page.label is not None and (there := visit.address_of(page)) is not None:
            groups.setdefault(page.group, []).append((page.label, there, page.label == visit.page.label))
    return groups


def _signing_in(asked: Asked, name: str | None, problem: str | None, to: str | None) -> bytes:
    """The sign-in page; ``to`` is opened afterwards."""
    context = _frame(asked.base, asked.theme) | {"visit": None, "name": name or "", "refusal": problem, "to": to or ""}
    return rendered("sign-in.html", context)


def _why_not_signed_in(refused: PrincipalRefused | TooManyRequests) -> str:
    """What the sign-in page says: nothing of whether there is such a user."""
    if isinstance(refused, PrincipalRefused):
        return "The name or the password is wrong."
    seconds = int(problems.retry_after(refused)[1])
    return f"There were too many attempts: wait {counted(seconds, 'second')}, then try again."


# --- answers ---


async def _answer(send: Send, status: int, body: bytes, head: list[Header]) -> None:
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [*head, length]})
    await send({"type": "http.response.body", "body": body})


async def _redirect(send: Send, there: str, cookie: bytes | None = None) -> None:
    more: list[Header] = [(b"location", there.encode("ascii", "replace"))]
    if cookie is not None:
        more.append((b"set-cookie", cookie))
    await _answer(send, 303, b"", headers(_HTML, *more))


async def _static(send: Send, path: str, method: str) -> None:
    name = path.rpartition("/")[2]
    if name not in STATIC or method not in ("GET", "HEAD"):
        await _answer(send, 404, b"", headers(_HTML))
        return
    media_type = MEDIA_TYPES[name[name.rindex(".") :]]
    await _answer(send, 200, STATIC[name], headers(media_type, is_kept=True))
