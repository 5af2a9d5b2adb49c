"""Commands of consumers: the end of leases, how queues deliver, and messages that go elsewhere."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from postroom.errors import ArgumentInvalid
from postroom.interfaces.cli import output
from postroom.interfaces.cli.context import (
    Commands,
    PropertiesOption,
    QueueArgument,
    argument,
    named_values,
    opened,
    option,
    settings,
)
from postroom.limits import SCREEN_MESSAGES
from postroom.model.body import Format
from postroom.model.moment import to_iso

if TYPE_CHECKING:
    from postroom.queues.relocating import Relocated

_SHOWN = 20  # keys of a dry run, and of messages that stay

LeaseArgument = Annotated[int, argument("LEASE", "The lease number that receive --lease printed.")]
DryOption = Annotated[bool, option("--dry-run", "Show which messages, and change nothing.")]
KeyOption = Annotated[list[str] | None, option("--key KEY", "Only this message; may be repeated.")]
LimitOption = Annotated[int | None, option("--limit N", "At most so many, oldest first.")]


class Order(StrEnum):
    """What happens to the next message while one is leased."""

    FREE = "free"
    STRICT = "strict"


class Expired(StrEnum):
    """What happens to expired messages."""

    DROP = "drop"
    DEAD_LETTERS = "dead-letters"


class CatchUp(StrEnum):
    """What a schedule sends for missed times."""

    NONE = "none"
    LAST = "last"
    ALL = "all"


class Retry(StrEnum):
    """Which failures of the engine are retried."""

    PASSING = "passing"
    ALL = "all"


class Over(StrEnum):
    """What happens when a queue is full."""

    REFUSE = "refuse"
    DEAD_LETTERS = "dead-letters"


def receive_leased(
    queue: list[str], lease: str, wait: float | None, or_fail: bool, count: int | None, where: str | None
) -> None:
    """Receive with a lease: messages go to standard output, lease numbers to standard error."""
    from postroom.queues.leases.leased import Leased

    many = 1 if count is None else count
    asked: dict[str, Any] = {"count": many, "lease": _lease(lease), "wait": wait, "where": where}
    with opened() as it:
        leased = it.receive_many(*queue, detached=True, **asked)
        if not settings.json:
            for message in leased:
                about = f"lease {message.lease}, attempt {message.attempts}"
                output.note(f"{about}: end it with postroom done {message.lease}")
                output.say(message.body)
        elif count is None:
            output.as_json(Leased(leased[0] if leased else None).as_dict())
        else:
            output.as_json({"messages": [message.as_dict() for message in leased]})
    if or_fail and not leased:
        raise typer.Exit(3)


def _lease(written: str) -> float | Literal[True]:
    """A number of seconds, or the queue's default."""
    if written == "policy":
        return True
    try:
        return float(written)
    except ValueError:
        raise ArgumentInvalid(argument="--lease", why="seconds, or policy: as long as the queue says") from None


def leases(
    after: Annotated[int, option("--after LEASE", "Continue after the lease with this number.")] = 0,
    limit: Annotated[int, option("--limit N", "At most so many.", show_default=True)] = SCREEN_MESSAGES,
) -> None:
    """List leased messages: who has them, and until when. The oldest lease comes first.

    With its number, a lease can be ended. It is lost if its time is over, or the process that it ends with is gone:
    the next receive from the queue gives the message back, as an attempt; release does it without one.

    \b
    Examples:
      postroom leases
      postroom leases --after 42 --limit 100
    """
    if limit < 1:
        raise ArgumentInvalid(argument="limit", why="at least 1")
    with opened() as it:
        found = it.consumers.leases(after=after, limit=limit + 1)
    shown, more = found[:limit], len(found) > limit
    if settings.json:
        output.as_json({"leased": [lease.as_dict() for lease in shown]})
    elif shown:
        rows = [
            (
                one.lease,
                one.key,
                one.queue,
                one.by,
                one.owner,
                to_iso(one.until),
                one.attempts,
                "lost" if one.lost else "",
            )
            for one in shown
        ]
        output.table(["lease", "key", "queue", "received by", "ends with", "until", "attempts", "state"], rows)
    if more:
        output.note(f"there are more: postroom leases --after {shown[-1].lease}")
    elif not shown and not settings.json:
        output.note("no message is leased")


def done(
    lease: Annotated[list[int], argument("LEASE...", "Lease numbers that receive --lease printed.")],
) -> None:
    """The work on leased messages is done, all of them or none.

    \b
    Examples:
      postroom done 42
      postroom done 42 43 44
    """
    with opened() as it:
        it.consumers.done_many([it.consumers.lease(number) for number in lease])
    shape: dict[str, Any] = {"lease": lease[0]} if len(lease) == 1 else {"leases": lease}
    output.answer(shape, f"done: {', '.join(map(str, lease))}")


def release(
    lease: LeaseArgument,
    delay: Annotated[
        float, option("--delay SECONDS", "Delivered again only after so many seconds.", show_default=True)
    ] = 0.0,
) -> None:
    """Give a leased message back, to its place in its queue.

    \b
    Example:
      postroom release 42 --delay 60
    """
    with opened() as it:
        it.consumers.lease(lease).release(delay)
    output.answer({"lease": lease}, f"released: {lease}")


def extend(
    lease: LeaseArgument,
    seconds: Annotated[float, argument("SECONDS", "Counted from now.")],
) -> None:
    """Let a lease end later.

    \b
    Example:
      postroom extend 42 120
    """
    with opened() as it:
        leased = it.consumers.lease(lease)
        leased.extend(seconds)
    output.answer({"lease": lease, "until": to_iso(leased.until)}, f"extended: {lease}")


def fail(
    lease: LeaseArgument,
    reason: Annotated[str, argument("REASON", "Why it failed.")],
    final: Annotated[bool, option("--final", "Make it a dead letter, without another attempt.")] = False,
) -> None:
    """Tell that an attempt has failed.

    The message waits for the next attempt, or goes to the dead letters after the last.

    \b
    Example:
      postroom fail 42 "the address is unknown" --final
    """
    with opened() as it:
        buried = it.consumers.lease(lease).fail(reason, final=final)
    text = f"failed: {lease}" if buried is None else f"failed: {lease}; it is in {buried} now"
    output.answer({"lease": lease, "dead_letters": buried}, text)


def purge(
    queue: QueueArgument,
    yes: Annotated[bool, option("--yes", "Do not ask for confirmation.")] = False,
    dry_run: DryOption = False,
) -> None:
    """Delete all messages of a queue that wait, after asking. Leased ones stay.

    \b
    Example:
      postroom purge orders.dead
    """
    with opened() as it:
        count = it.consumers.purge(*queue, dry=True).count
        asks = count and not (yes or dry_run)
        if asks and not typer.confirm(f"delete {count} message(s) of {' '.join(queue)}?", err=True):
            raise typer.Exit(1)
        gone = it.consumers.purge(*queue, dry=dry_run)
    _show(gone, "would be deleted" if dry_run else "deleted")


def move(
    queue: QueueArgument,
    to: Annotated[str, option("--to QUEUE", "The queue that gets them.")],
    key: KeyOption = None,
    limit: LimitOption = None,
    dry_run: DryOption = False,
) -> None:
    """Move messages that wait from one queue to the end of another.

    \b
    Example:
      postroom move orders --to orders-by-hand --limit 10
    """
    with opened() as it:
        moved = it.consumers.move(*queue, to=to, keys=key, limit=limit, dry=dry_run)
    _show(moved, "would be moved" if dry_run else "moved")


def redrive(
    queue: QueueArgument,
    to: Annotated[str | None, option("--to QUEUE", "Instead of the queues where they failed.")] = None,
    key: KeyOption = None,
    limit: LimitOption = None,
    body: Annotated[str | None, option("--body TEXT", "With --key: send this body instead.")] = None,
    dry_run: DryOption = False,
) -> None:
    """Send what failed, and dead letters, back to where it failed.

    A dead letter is moved, and its attempts begin anew. Of an error message, the message that failed is sent again.
    Those that cannot go, because their queue is full or on hold, stay and are listed (exit code 1).

    \b
    Examples:
      postroom redrive orders.dead --dry-run
      postroom redrive postroom-errors
      postroom redrive orders.dead --key 00001.00042 --body "order 17"
    """
    if body is not None and len(key or []) != 1:
        raise ArgumentInvalid(argument="--body", why="it goes with one message, named by --key")
    with opened() as it:
        edit = None if body is None else (lambda _: body)
        back = it.consumers.redrive(*queue, to=to, keys=key, limit=limit, edit=edit, dry=dry_run)
    _show(back, "would be moved back" if dry_run else "moved back")


LeaseSecondsOption = Annotated[float | None, option("--lease SECONDS", "How long a message is leased.")]
AttemptsOption = Annotated[int | None, option("--attempts N", "Attempts before a message is a dead letter.")]
BackoffOption = Annotated[
    float | None, option("--backoff SECONDS", "Wait before the second attempt; doubled each time.")
]
BackoffMaxOption = Annotated[float | None, option("--backoff-max SECONDS", "The longest wait between attempts.")]
DeadLettersOption = Annotated[str | None, option("--dead-letters QUEUE", "Where dead letters go.")]
OrderOption = Annotated[Order | None, option("--order", "strict: the next message waits while one is leased.")]
ByOption = Annotated[
    str | None, option("--by PROPERTY", "Keep the order of messages with the same value of this property.")
]
ExpiredOption = Annotated[Expired | None, option("--expired", "What becomes of expired messages.")]
MaxMessagesOption = Annotated[int | None, option("--max-messages N", "How many messages may wait.")]
MaxBytesOption = Annotated[int | None, option("--max-bytes N", "How many bytes of bodies may wait.")]
MaxAgeOption = Annotated[float | None, option("--max-age SECONDS", "How long a message may wait.")]
OverOption = Annotated[Over | None, option("--over", "What a full queue does with a send.")]
RetryOption = Annotated[Retry | None, option("--retry", "Which failures of rules, arcs and counters are tried again.")]
UnsetOption = Annotated[list[str] | None, option("--unset POLICY", "Remove one setting; may be repeated.")]


def queue_policy(
    queue: QueueArgument,
    lease: LeaseSecondsOption = None,
    attempts: AttemptsOption = None,
    backoff: BackoffOption = None,
    backoff_max: BackoffMaxOption = None,
    dead_letters: DeadLettersOption = None,
    order: OrderOption = None,
    by: ByOption = None,
    expired: ExpiredOption = None,
    max_messages: MaxMessagesOption = None,
    max_bytes: MaxBytesOption = None,
    max_age: MaxAgeOption = None,
    over: OverOption = None,
    retry: RetryOption = None,
    unset: UnsetOption = None,
    reset: Annotated[bool, option("--reset", "Remove the whole policy.")] = False,
) -> None:
    """Show or change how a queue delivers its messages; what is not named stays.

    \b
    Examples:
      postroom queue policy orders
      postroom queue policy orders --lease 60 --attempts 5 --backoff 2
      postroom queue policy orders --by customer
    """
    given: dict[str, Any] = {
        "lease": lease,
        "attempts": attempts,
        "backoff": backoff,
        "backoff_max": backoff_max,
        "dead_letters": dead_letters,
        "order": None if order is None else order.value,
        "by": by,
        "expired": None if expired is None else expired.value,
        "max_messages": max_messages,
        "max_bytes": max_bytes,
        "max_age": max_age,
        "over": None if over is None else over.value,
        "retry": None if retry is None else retry.value,
    }
    changes: Any = {**_usual(unset or []), **{name: value for name, value in given.items() if value is not None}}
    with opened() as it:
        changed = it.consumers.reset_policy(*queue) if reset else []
        changed = it.consumers.set_policy(*queue, **changes) if changes else changed
        policies = it.consumers.policy(*queue)
    if settings.json and (reset or changes):
        output.as_json({"changed": list(changed)})
    elif settings.json:
        shown = {name: policy._asdict() for name, policy in policies.items()}
        output.as_json({"policies": shown})
    else:
        rows = [(name, key, value) for name, policy in policies.items() for key, value in policy._asdict().items()]
        output.table(["queue", "policy", "value"], [row for row in rows if row[2] is not None])


def _usual(names: list[str]) -> dict[str, Any]:
    """The default values of some settings."""
    from postroom.store.kernel.policies import NO_POLICY

    usual = NO_POLICY._asdict()
    for name in names:
        if name.replace("-", "_") not in usual:
            raise ArgumentInvalid(argument="--unset", why=f"{name!r} is none of {', '.join(usual)}")
    return {name: usual[name] for name in (option.replace("-", "_") for option in names)}


schedule_app = Commands(help="Send messages on a schedule.")


@schedule_app.command("add")
def schedule_add(
    name: Annotated[str, argument("NAME")],
    cron: Annotated[str, argument("CRON", "minute hour day month weekday, or a word such as @daily")],
    queue: QueueArgument,
    body: Annotated[str, option("--body -b TEXT", "The message.")],
    format: Annotated[Format, option("--format -f", "How the body is written.", show_default=True)] = Format.TEXT,
    zone: Annotated[str, option("--zone NAME", "The time zone of the times.", show_default=True)] = "UTC",
    catch_up: Annotated[
        CatchUp, option("--catch-up", "What is sent for times that were missed.", show_default=True)
    ] = CatchUp.LAST,
    property: PropertiesOption = None,
) -> None:
    """Send a message to a queue at each time of a cron line, while an engine or workers run.

    \b
    Example:
      postroom schedule add morning "0 7 * * 1-5" orders --body "look at the mail" --zone Europe/Oslo
    """
    with opened() as it:
        options: dict[str, Any] = {"body": body, "format": format, "zone": zone, "catch_up": catch_up.value}
        options["properties"] = named_values(property or [])
        made = it.consumers.schedule(name, cron, *queue, **options)
    shape = made.as_dict()
    output.answer(shape, f"{name} is due at {shape['due']}")


@schedule_app.command("list")
def schedule_list() -> None:
    """List the schedules, and when each is due next.

    \b
    Example:
      postroom schedule list
    """
    with opened() as it:
        every = it.consumers.schedules()
    shown = [schedule.as_dict() for schedule in every]
    if settings.json:
        output.as_json({"schedules": shown})
    elif shown:
        output.table(
            ["schedule", "cron", "zone", "queue", "catch-up", "due"], [list(shape.values()) for shape in shown]
        )
    else:
        output.note("no schedule")


@schedule_app.command("remove")
def schedule_remove(name: Annotated[str, argument("NAME")]) -> None:
    """Remove a schedule.

    \b
    Example:
      postroom schedule remove morning
    """
    with opened() as it:
        it.consumers.unschedule(name)
    output.answer({"name": name}, f"removed {name}")


def _show(relocated: Relocated, text: str) -> None:
    if settings.json:
        output.as_json(relocated.as_dict())
    else:
        stays = f"; {len(relocated.skipped)} stay where they are" if relocated.skipped else ""
        output.say(f"{text}: {relocated.count}{stays}")
        if relocated.dry:
            for key, queue in relocated.moves[:_SHOWN]:
                output.say(f"  {key}" if queue is None else f"  {key} to {queue}")
        if relocated.dry and relocated.count > _SHOWN:
            output.note(f"and {relocated.count - _SHOWN} more; --json has all of them")
        for key, why in relocated.skipped[:_SHOWN]:
            output.note(f"{key} stays where it is: {why}")
        if len(relocated.skipped) > _SHOWN:
            output.note(f"and {len(relocated.skipped) - _SHOWN} more stay; --json has all of them")
    if relocated.skipped:
        raise typer.Exit(1)
