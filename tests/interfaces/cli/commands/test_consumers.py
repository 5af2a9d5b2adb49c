"""Leases, policies and moves from the command line."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from ...conftest import Run


def test_a_message_is_leased_and_ended_by_its_number(run: Run) -> None:
    run("queue", "create", "orders")
    for body in ("one", "two", "three"):
        run("send", "orders", "--body", body)
    got = run("receive", "orders", "--lease", "30")
    assert got.out == "one\n"
    number = re.search(r"lease (\d+), attempt 1", got.err)
    assert number is not None
    assert "leased" in run("count").out
    assert run("extend", number[1], "60").out == f"extended: {number[1]}\n"
    assert run("done", number[1]).out == f"done: {number[1]}\n"
    late = run("done", number[1])
    assert "lease-over" in late.err
    second = run("receive", "orders", "--lease", "30", "--json").json["message"]
    assert (second["body"], second["attempts"]) == ("two", 1)
    run("release", str(second["lease"]))
    again = run("receive", "orders", "--lease", "30", "--json").json["message"]
    assert (again["body"], again["attempts"]) == ("two", 1)
    failed = run("fail", str(again["lease"]), "no address", "--final")
    assert failed.out.endswith("it is in orders.dead now\n")
    assert run("redrive", "orders.dead", "--dry-run").out == f"would be moved back: 1\n  {second['key']} to orders\n"
    assert run("redrive", "orders.dead").out == "moved back: 1\n"
    assert run("move", "orders", "--to", "orders.dead", "--limit", "1").out == "moved: 1\n"
    assert run("purge", "orders", stdin="n\n").code == 1
    assert run("purge", "orders", "--yes").out == "deleted: 1\n"
    assert run("purge", "orders").out == "deleted: 0\n", "of nothing, nobody is asked"
    assert run("receive", "orders", "--lease", "5", "--or-fail").code == 3


def test_leases_are_listed_and_one_without_a_holder_is_given_back(run: Run) -> None:
    run("queue", "create", "orders")
    assert run("leases").err == "no message is leased\n"
    for none in ("0", "-1"):
        refused = run("leases", "--limit", none)
        assert refused.code == 1
        assert "argument-invalid: limit: at least 1" in refused.err
    for body in ("one", "two", "three"):
        run("send", "orders", "--body", body)
    first = run("receive", "orders", "--lease", "600", "--json").json["message"]["lease"]
    holder = "import os, postroom; postroom.open('postroom.db').receive('orders', lease=600); os._exit(0)"
    subprocess.run([sys.executable, "-c", holder], check=True)
    told = run("leases", "--limit", "1", "--json").json
    assert [each["lease"] for each in told["leased"]] == [first]
    assert f"postroom leases --after {first}" in run("leases", "--limit", "1").err
    (other,) = run("leases", "--after", str(first), "--json").json["leased"]
    assert (other["queue"], other["attempts"]) == ("orders", 1)
    assert f"process {other['owner'].split()[-1]}" in run("leases").out
    assert [each["lost"] for each in run("leases", "--json").json["leased"]] == [False, True], "its process has ended"
    assert [line.endswith("  lost") for line in run("leases").out.splitlines()[1:]] == [False, True]
    assert "have lost their holder" in run("doctor").out
    assert run("release", str(other["lease"])).out == f"released: {other['lease']}\n"
    again = run("receive", "orders", "--lease", "30", "--json").json["message"]
    assert (again["body"], again["attempts"]) == ("two", 1), "it was no attempt"


def test_a_policy_is_shown_and_changed(run: Run) -> None:
    run("queue", "create", "orders")
    assert "30.0" in run("queue", "policy", "orders").out
    changed = run("queue", "policy", "orders", "--attempts", "5", "--by", "customer", "--json").json
    assert changed == {"status": "00", "changed": ["orders"]}
    shown = run("queue", "policy", "orders", "--json").json
    assert (shown["policies"]["orders"]["attempts"], shown["policies"]["orders"]["by"]) == (5, "customer")
    assert run("queue", "policy", "orders", "--reset", "--json").json == {"status": "00", "changed": ["orders"]}
    assert run("queue", "policy", "orders", "--json").json["policies"]["orders"]["attempts"] is None


def test_messages_are_sent_with_wishes(run: Run) -> None:
    run("queue", "create", "orders")
    run("send", "orders", "--body", "plain")
    run("send", "orders", "--body", "urgent", "--priority", "9")
    run("send", "orders", "--body", "later", "--delay", "600")
    assert run("receive", "orders").out == "urgent\n"
    assert "delayed" in run("count").out
    refused = run("send", "orders", "--also", "orders", "--body", "x", "--delay", "5")
    assert "argument-invalid" in refused.err


def test_what_does_not_fit_into_a_full_queue_stays_and_is_counted(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("postroom.interfaces.cli.commands.consumers._SHOWN", 2)
    run("queue", "create", "orders")
    run("queue", "policy", "orders", "--attempts", "1")
    for body in ("1", "2", "3", "4", "5"):
        run("send", "orders", "--body", body)
        lease = run("receive", "orders", "--lease", "60", "--json").json["message"]["lease"]
        run("fail", str(lease), "bad")
    run("queue", "policy", "orders", "--max-messages", "2")
    full = "stays where it is: orders is full: it may have 2 messages and has 2; 1 more was to come"
    for dry, said in (("--dry-run", "would be moved back"), ("", "moved back")):
        told = run("redrive", "orders.dead", *filter(None, [dry]))
        assert (told.code, told.out.splitlines()[0]) == (1, f"{said}: 2; 3 stay where they are")
        *some, more = told.err.splitlines()
        assert [line.split(" ", 1)[1] for line in some] == [full] * 2
        assert more == "and 1 more stay; --json has all of them"
    told = run("redrive", "orders.dead", "--json")
    assert (told.code, told.json["error"]["code"]) == (1, "queue-full"), "none can go"
    assert run("count", "orders.dead", "--json").json["queues"][0]["unprocessed"] == 3


def test_a_dry_run_lets_in_what_fits_behind_what_does_not(run: Run) -> None:
    for queue in ("from", "small"):
        run("queue", "create", queue)
    for body in ("12345678", "1", "2"):
        run("send", "from", "--body", body)
    run("queue", "policy", "small", "--max-bytes", "4")
    for dry in ("--dry-run", "--json"):
        told = run("redrive", "from", "--to", "small", dry, "--json")
        assert (told.json["message_count"], len(told.json["skipped"])) == (2, 1)


def test_schedules_are_added_listed_and_removed(run: Run) -> None:
    run("queue", "create", "orders")
    added = run("schedule", "add", "morning", "0 7 * * 1-5", "orders", "--body", "look", "--zone", "Europe/Oslo")
    assert added.out.startswith("morning is due at 20")
    assert "0 7 * * 1-5" in run("schedule", "list").out
    assert run("schedule", "list", "--json").json["schedules"][0]["queue"] == "orders"
    run("schedule", "add", "evening", "@daily", "orders", "--body", "look", "--catch-up", "none")
    assert [each["catch_up"] for each in run("schedule", "list", "--json").json["schedules"]] == ["none", "last"]
    assert [line.split()[-2] for line in run("schedule", "list").out.splitlines()] == ["catch-up", "none", "last"]
    run("schedule", "remove", "evening")
    assert run("schedule", "remove", "morning").out == "removed morning\n"
    assert run("schedule", "list").err == "no schedule\n"


def test_messages_are_chosen_by_their_properties(run: Run) -> None:
    run("queue", "create", "orders")
    for body, region, total in (("one", "EU", "50"), ("two", "US", "150"), ("three", "EU", "150"), ("four", "EU", "9")):
        run("send", "orders", "--body", body, "--property", f"region={region}", "--property", f"total={total}")
    shown = run("peek", "orders", "--where", "region = 'EU' and total > 10", "--json").json["messages"]
    assert [message["body"] for message in shown] == ["one", "three"]
    assert "four" in run("info", "orders", "--where", "total < 10").out
    assert run("receive", "orders", "--where", "region = 'EU' and total > 100").out == "three\n"
    assert run("receive", "orders", "--lease", "policy", "--where", "total > 100").out == "two\n"
    assert run("receive", "orders", "--where", "total > 100", "--or-fail").code == 3
    assert run("receive", "orders", "--follow", "--wait", "0", "--where", "region = EU").out == "one\nfour\n"
    wrong = run("receive", "orders", "--where", "total >")
    assert "character 8" in wrong.err


def test_several_messages_are_leased_and_done(run: Run) -> None:
    run("queue", "create", "orders")
    for body in ("one", "two", "three"):
        run("send", "orders", "--body", body)
    leased = run("receive", "orders", "--lease", "30", "--count", "2", "--json").json["messages"]
    assert [message["body"] for message in leased] == ["one", "two"]
    numbers = [str(message["lease"]) for message in leased]
    assert run("done", *numbers, "--json").json["leases"] == [int(number) for number in numbers]
    assert "lease-over" in run("done", numbers[0]).err
    assert "argument-invalid" in run("receive", "orders", "--count", "2").err
    assert "argument-invalid" in run("receive", "orders", "--lease", "long").err


def test_the_options_of_a_send_are_those_of_python(run: Run) -> None:
    run("queue", "create", "orders")
    run("send", "orders", "--body", "then", "--at", "2999-01-31T07:00+02:00")
    assert "delayed" in run("count").out
    run("send", "orders", "--body", "now", "--at", "2020-01-31", "--reply-to", "answers", "--correlation", "17")
    message = run("receive", "orders", "--json").json["message"]
    assert (message["body"], message["properties"]) == ("now", {"correlation": "17", "reply_to": "answers"})
    assert "no time" in run("send", "orders", "--body", "x", "--at", "tomorrow").err
    assert "expires: seconds, more than 0" in run("send", "orders", "--body", "x", "--expires", "0").err
    for option in ("--at", "--reply-to", "--correlation"):
        assert "argument-invalid" in run("send", "orders", "--also", "orders", "--body", "x", option, "2999-01-31").err


def test_one_policy_is_taken_back(run: Run) -> None:
    run("queue", "create", "orders")
    run("queue", "policy", "orders", "--max-bytes", "10", "--attempts", "3", "--by", "customer")
    assert "queue-full" in run("send", "orders", "--body", "more than ten").err
    assert run("queue", "policy", "orders", "--unset", "by", "--unset", "max-bytes").code == 0
    shown = run("queue", "policy", "orders", "--json").json["policies"]
    assert [shown["orders"][name] for name in ("by", "max_bytes", "attempts")] == [None, None, 3]
    assert "argument-invalid" in run("queue", "policy", "orders", "--unset", "colour").err


def test_a_schedule_has_properties(run: Run) -> None:
    run("queue", "create", "orders")
    run("schedule", "add", "often", "* * * * *", "orders", "--body", "x", "--property", "region=EU")
    assert run("schedule", "list", "--json").json["schedules"][0]["name"] == "often"


def test_a_dry_run_shows_the_first_keys_and_how_many_more(run: Run) -> None:
    run("queue", "create", "orders")
    run("queue", "create", "other")
    keys = [run("send", "orders", "--body", "x").out.strip() for _ in range(22)]
    shown = run("move", "orders", "--to", "other", "--dry-run")
    assert shown.out.splitlines() == ["would be moved: 22", *(f"  {key} to other" for key in keys[:20])]
    assert shown.err == "and 2 more; --json has all of them\n"
    assert len(run("move", "orders", "--to", "other", "--dry-run", "--json").json["moves"]) == 22
    assert run("purge", "orders", "--dry-run").out.splitlines()[:2] == ["would be deleted: 22", f"  {keys[0]}"]
