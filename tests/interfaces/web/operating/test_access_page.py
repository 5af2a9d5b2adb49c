"""Users, grants, tokens and schedules, for operators alone."""

from __future__ import annotations

import re

from tests.interfaces.http.conftest import Served
from tests.interfaces.web.conftest import Browser, browser, taken_back, way_back

from postroom.interfaces.web.operating import access_page


def test_a_grant_is_given_and_withdrawn_at_once(shop: Served, operator: Browser) -> None:
    nobody = browser(shop.url)
    nobody.sign_in("nobody")
    assert nobody.get("/queues/answers").status_code == 403
    given = operator.post("/access", do="grant", principal="nobody", verb="look", object="answers")
    assert "nobody look answers: granted." in given.text
    assert nobody.get("/queues/answers").status_code == 200
    operator.post("/access", do="withdraw", principal="nobody", verb="look", object="answers")
    assert nobody.get("/queues/answers").status_code == 403
    assert operator.post("/access", do="grant", principal="stranger", verb="look").status_code >= 400
    assert operator.post("/access", do="grant", principal="nobody", verb="fly").status_code == 400
    for action in access_page.PAGE.actions:
        refused = nobody.post("/access", do=action, principal="nobody", verb="operate", name="x", object="*", id="x")
        assert refused.status_code == 403, action
    nobody.client.close()


def test_a_token_is_shown_once_works_and_is_revoked(shop: Served, operator: Browser) -> None:
    made = operator.post("/access", do="token", principal="looker", name="laptop", verbs="look", days="3")
    found = re.search(r'id="token">([^<]+)<', made.text)
    assert found is not None
    client = shop.client(found[1])
    assert client.get("/queues/answers/count").status_code == 200
    assert found[1] not in operator.get("/access").text
    (token,) = [each for each in shop.room.access.tokens() if each.name == "laptop"]
    assert "Revoked" in operator.post("/access", do="revoke", id=token.id).text
    assert client.get("/queues/answers/count").status_code == 401
    client.close()


def test_a_user_is_added_gets_another_password_and_is_removed(shop: Served, operator: Browser) -> None:
    assert "newcomer is registered" in operator.post("/access", do="add-user", name="newcomer", password="first").text
    assert operator.post("/access", do="add-user", name="newcomer", password="mine").status_code >= 400
    there = browser(shop.url)
    assert there.sign_in("newcomer", "mine").status_code == 403
    assert "There is nothing here that you may see." in there.sign_in("newcomer", "first").text
    assert "has another" in operator.post("/access", do="password", name="newcomer", password="second").text
    assert there.get("/you").url.path == "/web/sign-in"  # the old session has ended
    assert there.sign_in("newcomer", "second").status_code == 200
    assert "newcomer was removed." in operator.post("/access", do="remove-user", name="newcomer").text
    assert there.get("/you").url.path == "/web/sign-in"
    assert "newcomer" not in shop.room.flows.principals()
    for action, fields in (("add-user", {"name": "x"}), ("password", {"name": "newcomer", "password": "x"})):
        assert operator.post("/access", do=action, **fields).status_code == 400
    assert operator.post("/access", do="remove-user", name="newcomer").status_code == 400
    assert "newcomer" not in shop.room.flows.principals()
    there.client.close()


def test_the_login_of_a_station_is_no_user_and_stays(shop: Served, operator: Browser) -> None:
    shop.room.stations.add("Nobody", "its own")
    text = operator.get("/access").text
    users, stations = text.partition(">Users")[2].partition(">Schedules")[0].split(">Stations")
    assert "<span>nobody</span>" in users
    assert "<span>Nobody</span>" not in users
    assert "<span>Nobody</span>" in stations
    refused = operator.post("/access", do="remove-user", name="Nobody")
    assert refused.status_code == 409
    assert "it is the login of the station Nobody on node control" in refused.text
    assert "Nobody" in shop.room.flows.principals()
    assert "nobody was removed." in operator.post("/access", do="remove-user", name="nobody").text
    shop.room.stations.remove("Nobody")
    assert "Nobody was removed." in operator.post("/access", do="remove-user", name="Nobody").text


def test_a_schedule_is_added(shop: Served, operator: Browser) -> None:
    fields = {"name": "tide", "cron": "0 7 * * 1-5", "queue": "answers", "body": "<go/>", "zone": "Europe/Rome"}
    assert "tide is sent next at" in operator.post("/access", do="schedule", **fields).text
    (made,) = shop.room.consumers.schedules()
    assert (made.name, made.cron, made.zone, made.queue) == ("tide", "0 7 * * 1-5", "Europe/Rome", "answers")
    wrong = operator.post("/access", do="schedule", **{**fields, "name": "odd", "cron": "at noon"})
    assert wrong.status_code == 400
    assert 'value="at noon"' in wrong.text  # what was typed stays
    assert len(shop.room.consumers.schedules()) == 1


def test_sessions_are_ended_and_schedules_removed(shop: Served, operator: Browser) -> None:
    looker = browser(shop.url)
    looker.sign_in("looker")
    assert "Ended 1 session of looker." in operator.post("/access", do="sign-out", principal="looker").text
    assert looker.get("/overview").url.path == "/web/sign-in"
    shop.room.consumers.schedule("morning", "0 7 * * 1-5", "answers", body="look")
    assert "0 7 * * 1-5" in operator.get("/access").text
    operator.post("/access", do="unschedule", name="morning")
    assert shop.room.consumers.schedules() == []
    looker.client.close()


def test_a_grant_that_was_withdrawn_is_given_again_by_whoever_may(shop: Served, operator: Browser) -> None:
    shop.room.access.grant("nobody", "look", "answers")
    what = {"principal": "nobody", "verb": "look", "object": "answers"}
    gone = operator.post("/access", do="withdraw", **what)
    assert way_back(gone) == "Grant it again"
    assert "granted." in taken_back(operator, gone).text
    assert [grant.verb for grant in shop.room.access.grants() if grant.principal == "nobody"] == ["look"]
    operator.post("/access", do="withdraw", **what)
    none = operator.post("/access", do="withdraw", **what)
    assert "there was no such grant" in none.text
    assert way_back(none) is None
    shop.room.access.withdraw("operator", "operate", "*")
    shop.room.access.grant("operator", "look", "*")
    refused = taken_back(operator, gone)
    assert refused.status_code == 403
    assert [grant for grant in shop.room.access.grants() if grant.principal == "nobody"] == []


def test_what_cannot_be_undone_is_told_before_it_is_done(shop: Served, operator: Browser) -> None:
    shop.room.access.create_token("looker", "printer")
    shop.room.consumers.schedule("nightly", "0 3 * * *", "answers", body="x")
    text = operator.get("/access").text
    for said in ("Revoke printer", "Remove nightly", "Remove the user of this name", "Nothing more is sent by it."):
        assert said in text
    assert text.count('<details class="sure">') == 3 + len(shop.room.access.tokens())  # and one's own right to operate


def test_what_was_refused_stays_in_its_own_form_and_says_why_at_its_field(shop: Served, operator: Browser) -> None:
    """The fields of a token were empty again; a name stood in the form of users and in that of schedules."""
    said = {"principal": "looker", "name": "laptop", "verbs": "look", "days": "soon"}
    refused = operator.post("/access", do="token", **said)
    assert refused.status_code == 400
    for field in ("token-user", "token-name", "token-verbs", "token-days"):
        (typed,) = re.findall(rf'<input id="{field}"[^>]* value="([^"]*)"', refused.text)
        assert typed in said.values(), field
    assert '<span class="error" id="token-days-error">' in refused.text
    assert "A whole number of days is expected.</span>" in refused.text
    assert 'id="user-name" name="name" type="text" value=""' in refused.text
    assert 'id="schedule-name" name="name" type="text" value=""' in refused.text
    refused = operator.post("/access", do="add-user", name="max", password="")
    assert 'id="user-name" name="name" type="text" value="max"' in refused.text
    assert '<span class="error" id="user-password-error">' in refused.text
    refused = operator.post("/access", do="password", name="stranger", password="correct horse")
    assert '<span class="error" id="user-name-error">' in refused.text
    assert "correct horse" not in refused.text


def test_a_grant_to_nobody_says_so_at_its_field(shop: Served, operator: Browser) -> None:
    for action, more in (("grant", {"verb": "look", "object": "*"}), ("token", {"name": "laptop"})):
        refused = operator.post("/access", do=action, principal="stranger", **more)
        assert refused.status_code == 400
        assert "User: there is no user &#39;stranger&#39;" in refused.text
        assert "There is no user &#39;stranger&#39;." in refused.text  # at the field
        assert "password, or log in again" not in refused.text


def test_a_grant_for_nothing_is_not_one_for_everything_and_a_slip_is_told(shop: Served, operator: Browser) -> None:
    empty = operator.post("/access", do="grant", principal="nobody", verb="look", object=" ")
    assert empty.status_code == 400
    assert "What: it is missing" in empty.text
    assert [grant for grant in shop.room.access.grants() if grant.principal == "nobody"] == []
    for verb, slip, there, what in (("work", "Anne", "Ann", "station"), ("look", "answer", "answers", "queue")):
        if what == "station":
            shop.room.stations.add("Ann", "its own")
        given = operator.post("/access", do="grant", principal="nobody", verb=verb, object=slip)
        assert f"granted. There is no {what} {slip} yet." in given.text
        assert "yet." not in operator.post("/access", do="grant", principal="nobody", verb=verb, object=there).text
    odd = operator.post("/access", do="grant", principal="nobody", verb="look", object="a" * 2000)
    assert odd.status_code == 400
    assert "What: " in odd.text
    assert "object: " not in odd.text


def test_an_operator_gives_up_by_a_second_button_and_is_offered_nothing_impossible(
    shop: Served, operator: Browser
) -> None:
    own = {"principal": "operator", "verb": "operate", "object": "*"}
    shop.room.access.withdraw("boss", "operate")
    page = operator.get("/access").text
    assert "you are the last operator" in page
    assert page.count('value="give-up"') == 1
    refused = operator.post("/access", do="withdraw", **own)
    assert refused.status_code == 400
    assert "Nothing was changed" in refused.text
    shop.room.access.grant("looker", "operate")
    assert "another operator can" in operator.get("/access").text
    assert (
        "looker operate *: withdrawn" in operator.post("/access", do="withdraw", **{**own, "principal": "looker"}).text
    )
    gone = operator.post("/access", do="give-up", **own)
    assert gone.status_code == 200
    assert gone.url.path == "/web/you"
    assert way_back(gone) is None
    assert operator.get("/access").status_code == 403
