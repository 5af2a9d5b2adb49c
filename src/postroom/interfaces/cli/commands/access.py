"""Commands on who may do what through a server: grant, token, why-not."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from postroom.errors import QueueUnknown
from postroom.interfaces.cli import output
from postroom.interfaces.cli.commands import flows
from postroom.interfaces.cli.context import Commands, argument, opened, option, settings
from postroom.limits import SECRET_CHARS_MAX
from postroom.model.paths import text_of
from postroom.model.rights import EVERYTHING, VERBS

if TYPE_CHECKING:
    from postroom.room import Postroom

grant_app = Commands(help="What users may do through a server.")
token_app = Commands(help="Tokens, by which programs show who they act for.")

user_app = Commands(help="Users: the same as principals.")
NameArgument = Annotated[str, argument("NAME", "Letters, digits and _.")]
UserArgument = Annotated[str, argument("USER", "From postroom user list.")]
VerbArgument = Annotated[
    str,
    argument(
        "VERB",
        "look, send, receive, manage (a queue); publish, subscribe (a space); work (at a station); load; sphere; "
        "measure (only numbers); operate (everything).",
    ),
]
ObjectArgument = Annotated[
    str,
    argument("OBJECT", "A queue or level (A/B), a space, a station; * is every one.", show_default=True),
]


@user_app.command("add")
def user_add(
    name: NameArgument,
    replace: Annotated[
        bool, option("--replace", "As the operator: change a password without the current one.")
    ] = False,
    password_file: Annotated[Path | None, option("--password-file FILE", "Read the password from a file.")] = None,
) -> None:
    """Add a user, or change a password.

    The password comes from $POSTROOM_PASSWORD, the terminal or standard input, or from the first line of a file. With
    it, the user signs in to the pages of the server. A new user may do nothing: postroom grant add.

    \b
    Examples:
      postroom user add ann
      postroom user add ann --password-file ann.txt
    """
    if password_file is None:
        flows.principal_add(name, token=False, replace=replace)
        return
    password = text_of(password_file, SECRET_CHARS_MAX * 4 + 2).partition("\n")[0].removesuffix("\r")
    with opened(create=True) as it:
        it.flows.add_principal(name, password, replace=replace)
    output.answer({"principal": name}, f"{name} is registered")


@user_app.command("sign-out")
def user_sign_out(name: NameArgument) -> None:
    """End every session and login of a user, at once.

    \b
    Example:
      postroom user sign-out ann
    """
    with opened() as it:
        ended = it.access.end_sessions(name)
    output.answer({"principal": name, "session_count": ended}, f"{name}: {ended} session(s) ended")


@user_app.command("list")
def user_list() -> None:
    """List the users.

    \b
    Example:
      postroom user list
    """
    flows.principal_list()


@user_app.command("remove")
def user_remove(name: NameArgument) -> None:
    """Remove a user, with all grants and tokens.

    \b
    Example:
      postroom user remove ann
    """
    flows.principal_remove(name)


@grant_app.command("add")
def grant_add(user: UserArgument, verb: VerbArgument, object: ObjectArgument = "*") -> None:
    """Allow a user something.

    A level of the tree of queues stands for all queues below it.

    \b
    Examples:
      postroom grant add ann send orders
      postroom grant add ann look CLAIMS/SOUTH
      postroom grant add boss operate
    """
    with opened() as it:
        added = it.access.grant(user, verb, object)
        missing = _missing(it, verb, object)
    _tell(user, verb, object, added, "granted" if added else "granted already")
    if missing is not None:
        output.note(f"there is no {missing} {object} yet; the grant is for the time when there is one")


def _missing(it: Postroom, verb: str, object: str) -> str | None:
    """Why an object of a grant does not exist yet: the queue may come later, or the name may be mistyped."""
    kind = VERBS[verb]
    if object == EVERYTHING or ":" in object:  # a place of a station, a meta-space
        return None
    if kind == "station":
        return None if object in it.stations.all() else kind
    if kind not in ("queue", "space"):
        return None
    try:
        it.queues.count(object)
    except QueueUnknown:
        return kind
    return None


@grant_app.command("remove")
def grant_remove(user: UserArgument, verb: VerbArgument, object: ObjectArgument = "*") -> None:
    """Take a grant back, at once.

    \b
    Example:
      postroom grant remove ann send orders
    """
    with opened() as it:
        removed = it.access.withdraw(user, verb, object)
    _tell(user, verb, object, removed, "withdrawn" if removed else "there was no such grant")


def _tell(user: str, verb: str, object: str, changed: bool, text: str) -> None:
    output.answer(
        {"principal": user, "verb": verb, "object": object, "is_changed": changed}, f"{user} {verb} {object}: {text}"
    )


@grant_app.command("list")
def grant_list(
    user: Annotated[str | None, argument("USER", "Only those of this user.")] = None,
) -> None:
    """List grants.

    \b
    Example:
      postroom grant list ann
    """
    with opened() as it:
        grants = it.access.grants(user)
    if settings.json:
        output.as_json({"grants": [grant._asdict() for grant in grants]})
    else:
        output.table(["user", "verb", "object"], grants)


def why_not(user: UserArgument, verb: VerbArgument, object: ObjectArgument = "*") -> None:
    """Explain why a user may not do something.

    Exits with 1 if it may not.

    \b
    Example:
      postroom why-not ann receive orders
    """
    with opened() as it:
        why = it.access.why_not(user, verb, object)
    output.answer(
        {"principal": user, "verb": verb, "object": object, "is_allowed": why is None, "why": why},
        f"{user} may {verb} {object}" if why is None else f"{user} may not {verb} {object}: {why}",
    )
    if why is not None:
        raise typer.Exit(1)


@token_app.command("create")
def token_create(
    user: UserArgument,
    name: Annotated[str, argument("NAME", "A name that says what the token is for.")],
    only: Annotated[list[str] | None, option("--only VERB", "Limit it to this verb; may be repeated.")] = None,
    days: Annotated[float | None, option("--days N", "It expires after so many days.")] = None,
) -> None:
    """Create a token for a user, and print it.

    It is printed once: the room keeps only a hash. Whoever has it may do what the user may.

    \b
    Examples:
      postroom token create ann laptop
      postroom token create ann reports --only look --days 30
    """
    with opened() as it:
        token = it.access.create_token(user, name, verbs=only or None, days=days)
    output.answer({"principal": user, "name": name, "token": token}, token)


@token_app.command("list")
def token_list(
    user: Annotated[str | None, argument("USER", "Only those of this user.")] = None,
) -> None:
    """List tokens, without their secrets.

    \b
    Examples:
      postroom token list
      postroom token list ann
    """
    with opened() as it:
        tokens = [token for token in it.access.tokens() if user is None or token.principal == user]
    if settings.json:
        output.as_json({"tokens": [token.as_dict() for token in tokens]})
        return
    rows = [
        (record["id"], record["principal"], record["name"], " ".join(record["verbs"] or ["*"]), record["expires"] or "")
        for record in (token.as_dict() for token in tokens)
    ]
    output.table(["token", "user", "name", "may", "expires"], rows)


@token_app.command("revoke")
def token_revoke(
    id: Annotated[str, argument("TOKEN", "From postroom token list.")],
) -> None:
    """Revoke a token, at once.

    \b
    Example:
      postroom token revoke 0123456789ab
    """
    with opened() as it:
        it.access.revoke_token(id)
    output.answer({"id": id}, f"{id} is revoked")
