"""A day at the office and what operators do, clicked through in a real browser."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect
from tests.interfaces.http.conftest import Served
from tests.interfaces.web.browsing import README, SECONDS, screen, sign_in
from tests.interfaces.web.conftest import PASSWORD, fail, held

#: Where the blanks of each line begin and how wide they are, in columns.
MEASURE = """() => {
  const probe = document.createElement('span');
  probe.className = 'typed w10';
  document.querySelector('.sheet').append(probe);
  const column = probe.getBoundingClientRect().width / 10;
  probe.remove();
  return [...document.querySelectorAll('.paper .row')].map((row) => {
    const left = row.getBoundingClientRect().left;
    return [...row.querySelectorAll('textarea, input:not([type=date])')].map((field) => {
      const box = field.getBoundingClientRect();
      return [Math.round((box.left - left) / column), Math.round(box.width / column)];
    });
  });
}"""


def created(page: Page) -> str:
    """The key of a form that was created."""
    page.wait_for_url("**/forms/**")
    return page.url.split("/forms/")[1].split("?")[0]


def filled_in(stage: Served, page: Page) -> str:
    """Ben fills in a claim; what does not fit is said beside its field, and nothing is made."""
    page.goto(f"{stage.url}/web/desk/Ben")
    page.keyboard.press("n")
    page.get_by_role("link", name="Fill in CLAIM").click()
    page.get_by_label("No:").fill("1042")
    page.get_by_label("Claimant:").fill("Oak Bakery")
    page.get_by_label("Amount:").fill("1,200.50")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("alert")).to_contain_text("1 field does not fit")
    wrong = page.get_by_label("Amount:")
    expect(wrong).to_have_attribute("aria-invalid", "true")
    expect(wrong).to_be_focused()
    wrong.fill("1200.50")
    page.get_by_label("Loss:", exact=True).fill("roof damaged by the storm of Friday")
    page.keyboard.press("Control+Enter")
    key = created(page)
    assert stage.room.stations.admitted("Ben").show(key).fields["Claimant"] == "Oak Bakery"
    return key


def settled(stage: Served, page: Page, key: str) -> None:
    """The procedure waits for an approval; Ann makes the missing one from its sketch, and the procedure completes."""
    stage.room.run(until_idle=True)
    page.goto(f"{stage.url}/web/desk/Ann")
    expect(page.locator("#waiting .card")).to_contain_text("missing")
    screen(page, "desk")
    page.get_by_role("link", name="Create the missing one").click()
    expect(page.get_by_label("No:")).to_have_value("1042")
    page.get_by_label("Cover:").fill("1500")
    page.get_by_role("button", name="Create").click()
    created(page)
    stage.room.run(until_idle=True)
    assert stage.room.stations.admitted("Ann").show(key).fields["State"] == "approved"


def test_an_office_day_on_three_stations(stage: Served, signed_in: BrowserContext, page: Page) -> None:
    at_ann = signed_in.new_page()
    at_ann.goto(f"{stage.url}/web/desk/Ann")
    expect(at_ann.get_by_text("No mail.")).to_be_visible()
    expect(at_ann.locator(".live span")).to_have_text("live")
    key = filled_in(stage, page)

    # it is shipped, and appears on Ann's desk without a reload
    page.get_by_label("To station").fill("Ann")
    page.get_by_role("button", name="Ship", exact=True).click()
    expect(page.get_by_role("status").filter(has_text="Shipped")).to_be_visible()
    row = at_ann.locator(f"#mailbox [data-row='{key}']")
    expect(row).to_be_visible(timeout=SECONDS)

    # a query of Ben does not find it in Ben's forms any more
    page.goto(f"{stage.url}/web/desk/Ben/query/CLAIM")
    page.get_by_label("Amount:").fill(">1000")
    page.get_by_role("button", name="Find").click()
    expect(page.get_by_text("Nothing was found.")).to_be_visible()
    expect(page.locator(".reads")).to_have_text("CLAIM with Amount above 1000.")

    # everywhere means mailboxes, too: there it is on its way
    page.get_by_role("radio", name="Everywhere").check()
    page.get_by_role("button", name="Find").click()
    found = page.locator("#found tbody tr").filter(has_text=key.rpartition(".")[2])
    expect(found).to_contain_text("mailbox of Ann")
    found.get_by_role("link").click()
    expect(page.locator("#image")).to_contain_text("Oak Bakery")
    screen(page, "query")

    # Ann looks at it, gets it and writes on it
    row.get_by_role("link").click()
    expect(at_ann.get_by_text("read-only until you get it")).to_be_visible()
    at_ann.get_by_role("button", name="Get and open").click()
    at_ann.wait_for_url("**/forms/**")
    at_ann.get_by_label("Remarks:").fill("tiles of the west side only")
    screen(at_ann, "form")
    screen(at_ann, "form", height=620, folder=README)
    at_ann.get_by_role("button", name="Save").click()
    expect(at_ann.get_by_text("Saved 1 field.")).to_be_visible()
    assert stage.room.stations.admitted("Ann").show(key).fields["Remarks"] == "tiles of the west side only"
    settled(stage, at_ann, key)

    # its way: three stops, and what the procedure wrote is marked as the system's
    at_ann.goto(f"{stage.url}/web/trace/{key}")
    expect(at_ann.locator(".way li")).to_have_count(3)
    expect(at_ann.locator(".way li").nth(1)).to_contain_text("mailbox of Ann")
    expect(at_ann.locator(".row.by-machine")).to_contain_text("State")
    screen(at_ann, "trace")
    at_ann.close()


def test_a_draft_is_kept_until_it_is_saved(stage: Served, page: Page) -> None:
    page.goto(f"{stage.url}/web/desk/Director/new/CLAIM")
    page.get_by_label("Claimant:").fill("Quay Shop")
    expect(page.locator("[data-draft-said]")).to_contain_text("draft kept at")
    page.goto(f"{stage.url}/web/desk/Director")
    page.goto(f"{stage.url}/web/desk/Director/new/CLAIM")
    expect(page.get_by_label("Claimant:")).to_have_value("Quay Shop")
    page.get_by_label("No:").fill("7")
    page.get_by_role("button", name="Create").click()
    created(page)
    page.goto(f"{stage.url}/web/desk/Director/new/CLAIM")
    expect(page.get_by_label("Claimant:")).to_have_value("")


def test_a_form_is_drawn_as_its_template(stage: Served, page: Page) -> None:
    """Labels, blanks and their widths stand where the template has them, line for line."""
    page.goto(f"{stage.url}/web/desk/Director/new/CLAIM")
    rows = page.locator(".paper .row")
    assert rows.count() == 6
    boxes = page.evaluate(MEASURE)
    form = stage.room.stations.form("CLAIM").form
    automatic = {"KEY", "DATE", "From"}
    drawn = [
        [[blank.start, blank.width] for blank in line.blanks if blank.name not in automatic] for line in form.lines
    ]
    assert boxes == drawn


def test_tab_follows_the_template_and_fixed_fields_are_no_stops(stage: Served, page: Page) -> None:
    key = stage.room.stations.admitted("Director").create("CLAIM", {"No": 8, "Claimant": "Dye Works"})
    page.goto(f"{stage.url}/web/desk/Director/forms/{key}")
    names = page.evaluate("[...document.querySelectorAll('.paper [data-field]')].map((field) => field.dataset.label)")
    assert names == ["Region", "Loss", "Amount", "Loss Date", "Remarks", "State"]
    page.get_by_label("Region:").focus()
    expect(page.locator("[data-status]")).to_contain_text("fixed once entered")
    for name in names[1:3]:
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.dataset.label") == name


def test_a_user_without_rights_sees_and_does_nothing(stage: Served, engine: Browser) -> None:
    with engine.new_context() as context:
        page = context.new_page()
        sign_in(page, stage.url, "nobody")
        expect(page.get_by_text("There is nothing here that you may see.")).to_be_visible()
        assert page.locator("nav li").count() == 0
        for address in ("/overview", "/queues/orders", "/failures", "/spheres", "/access", "/journal"):
            page.goto(f"{stage.url}/web{address}")
            expect(page.get_by_role("alert")).to_contain_text("nobody may not")
        page.goto(f"{stage.url}/web/desk/Ann")
        expect(page.get_by_role("alert")).to_contain_text("nobody may not work Ann")


def test_a_failure_is_found_edited_and_retried(stage: Served, page: Page) -> None:
    """From the overview, as an operator finds it, to the answer that the mended message led to."""
    room = stage.room
    failed = {message.key for message in room.queues.peek("errors")}
    page.goto(f"{stage.url}/web/overview")
    expect(page.locator(".live span")).to_have_text("live")
    (key,) = set(fail(room, "a dozen")) - failed
    row = page.locator("#waits li").filter(has_text="error message")  # it has come without a reload
    expect(row.first).to_be_visible(timeout=SECONDS)
    row.first.get_by_role("link").click()
    expect(page.locator("#causes")).to_contain_text("Cannot convert string \u2026 to an integer")
    page.goto(f"{stage.url}/web/failures?key={key}")
    expect(page.locator(".source .guilty")).to_contain_text("xs:integer(/ask/count)")
    expect(page.get_by_label("The message that failed")).to_contain_text("a dozen")
    field = page.get_by_label("What is sent instead")
    field.fill(field.input_value().replace("a dozen", "several"))
    page.get_by_role("button", name="Dry run", exact=True).click()
    expect(page.get_by_text("fails again", exact=True)).to_be_visible()
    field.fill(field.input_value().replace("several", "12"))
    page.get_by_role("button", name="Dry run", exact=True).click()
    expect(page.get_by_text("<answer>13</answer>")).to_be_visible()
    assert key in {message.key for message in room.queues.peek("errors")}  # nothing was changed
    screen(page, "failures")
    screen(page, "failures", height=720, folder=README)
    page.get_by_role("button", name="Retry this one").click()
    expect(page.get_by_role("status").filter(has_text="Sent again to stock.")).to_be_visible()
    room.run(until_idle=True)
    assert "<answer>13</answer>" in [message.body for message in room.queues.peek("answers")]
    assert key not in {message.key for message in room.queues.peek("errors")}


def test_a_sphere_is_aborted(stage: Served, page: Page) -> None:
    made = stage.room.spheres.open("pay-1042")
    made.send("orders", "<pay/>", compensation="<pay-back/>")
    before = len(stage.room.queues.peek("orders").messages)
    page.goto(f"{stage.url}/web/spheres")
    page.get_by_role("link", name="pay-1042").click()
    expect(page.locator("#sends")).to_contain_text("withdrawn")
    page.get_by_label("Reason, for the journal").fill("the account is blocked")
    page.get_by_role("button", name="Abort pay-1042").click()
    expect(page.get_by_role("status").filter(has_text="pay-1042 is ABORTED.")).to_be_visible()
    expect(page.locator("#sends")).to_contain_text("the account is blocked")
    assert stage.room.spheres.show("pay-1042").sphere.state == "ABORTED"
    assert len(stage.room.queues.peek("orders").messages) == before - 1


def test_a_long_query_shows_how_far_it_is_and_is_stopped(
    stage: Served, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    page.goto(f"{stage.url}/web/desk/Director/query/APPROVAL")
    page.get_by_role("radio", name="Everywhere").check()
    with held(monkeypatch) as (_, go):
        page.get_by_role("button", name="Find").click()
        expect(page.locator("#asking")).to_contain_text("1 of 2 places have answered.")
        page.get_by_role("button", name="Stop").click()
        expect(page.get_by_role("status").filter(has_text="Stopped.")).to_be_visible()
        page.get_by_role("radio", name="Everywhere").check()
        page.get_by_role("button", name="Find").click()
        expect(page.locator("#asking")).to_be_visible()
        go.set()
        expect(page.locator("#found")).to_be_visible()  # without a click


def test_a_template_is_drawn_as_one_types_and_then_filled_in(stage: Served, page: Page) -> None:
    page.goto(f"{stage.url}/web/templates")
    page.get_by_role("link", name="New template").click()
    text = page.get_by_label("Template and fields")
    text.fill("type TRIP\n| Where: ________________ |\n")
    expect(page.locator("#drawn .sheet")).to_contain_text("Where:")
    expect(page.locator("#drawn").get_by_role("alert")).to_contain_text("a type has fields")
    text.press("Control+End")
    text.press_sequentially("field Where string required")
    expect(page.locator("#drawn").get_by_role("alert")).to_have_count(0)
    expect(page.locator("#drawn").get_by_label("Where:")).to_be_visible()
    page.get_by_role("button", name="Load").click()
    expect(page.get_by_role("status").filter(has_text="TRIP was loaded.")).to_be_visible()
    page.goto(f"{stage.url}/web/desk/Director/new/TRIP")
    page.get_by_label("Where:").fill("Rome")
    page.get_by_role("button", name="Create").click()
    created(page)


def test_a_procedure_is_filled_in_tried_and_runs(stage: Served, page: Page) -> None:
    room = stage.room
    director = room.stations.admitted("Director")
    key = director.create("CLAIM", {"No": 77001, "Claimant": "Mill Garage", "Amount": "90"})
    page.goto(f"{stage.url}/web/procedures?new=1")
    page.get_by_label("Procedure", exact=True).fill("small")
    page.get_by_label("at station").fill("Director")
    for kind, name, of in (("precondition", "claim", "CLAIM"), ("action", "grant", "claim")):
        page.get_by_label("Sketch", exact=True).select_option(kind)
        page.get_by_label("named").fill(name)
        page.get_by_label("of type, or on sketch").fill(of)
        page.get_by_role("button", name="Add", exact=True).click()
    page.locator("#sketch-0").get_by_label("No:").fill(">= 77000")
    page.locator("#sketch-0").get_by_label("Amount:").fill("< many")
    page.locator("#sketch-1").get_by_label("State:").fill("granted")
    page.get_by_role("button", name="Try").click()
    wrong = page.locator("#sketch-0").get_by_label("Amount:")
    expect(wrong).to_have_attribute("aria-invalid", "true")
    wrong.fill("< 100")
    page.get_by_role("button", name="Try").click()
    expect(page.locator("#tried")).to_contain_text("1 set of forms would be complete.")
    screen(page, "procedure")
    page.get_by_role("button", name="Load").click()
    expect(page.get_by_role("status").filter(has_text="the procedure small was loaded.")).to_be_visible()
    room.run(until_idle=True)
    assert director.show(key).fields["State"] == "granted"
    room.stations.remove_procedure("small")


LAMPS = """create queue lamps kind basic mode persistent
create queue shelf kind basic mode persistent
create rule put for lamps
  if (/lamp) then do enqueue <kept>{string(/lamp)}</kept> into shelf
"""


def test_a_program_is_loaded_with_an_error_mended_tried_and_loaded(stage: Served, page: Page) -> None:
    room = stage.room
    page.goto(f"{stage.url}/web/programs")
    page.get_by_label("File").fill("lamps.demaq")
    page.get_by_label("Text").fill(LAMPS.replace("rule put for lamps", "rule put for lamp"))
    page.get_by_role("button", name="Load", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("Nothing was changed.")
    expect(page.locator(".source .guilty")).to_contain_text("rule put for lamp")
    page.get_by_label("Text", exact=True).last.fill(LAMPS)
    page.get_by_role("button", name="Load", exact=True).click()
    expect(page.get_by_role("status").filter(has_text="Version")).to_be_visible()
    room.send("lamps", "<lamp>blue</lamp>", format="xml")

    # a change is tried on what is there, compared, and loaded
    page.get_by_role("link", name="lamps.demaq").click()
    text = page.get_by_role("textbox", name="Text")
    text.fill(text.input_value().replace("kept>", "put>"))
    page.get_by_role("button", name="Try on stored messages").click()
    expect(page.locator("#tried")).to_contain_text("1 of 1 would have another outcome than now.")
    expect(page.locator("#tried tbody tr")).to_contain_text("<put>blue</put>")
    screen(page, "programs")
    page.get_by_role("button", name="Load", exact=True).click()
    expect(page.get_by_role("status").filter(has_text="Version")).to_be_visible()
    room.run(until_idle=True)
    assert [message.body for message in room.queues.peek("shelf")] == ["<put>blue</put>"]
    page.get_by_role("link", name="lamps.demaq").click()
    page.locator("#versions li a").nth(1).click()
    expect(page.locator("tr.replace")).to_contain_text("kept")


FERRY = """domain ferry
space Crossings : [boat: string, cars: int]
space Full : [boat: string, cars: int]
arc full : Crossings -> Full select [cars: c > 100]
allow keeper : disableArc, enableArc, addArc, deleteArc
"""


def test_a_graph_is_changed_live_by_whom_its_domain_allows(
    stage: Served, page: Page, engine: Browser, tmp_path: Path
) -> None:
    """The clerk is an operator, and still may not: what is allowed is said by the domain."""
    room = stage.room
    room.flows.add_principal("keeper", PASSWORD)
    for verb, object in (("look", "*"), ("publish", "meta:ferry")):
        room.access.grant("keeper", verb, object)
    (tmp_path / "ferry.flow").write_text(FERRY)
    room.load(tmp_path / "ferry.flow")
    page.goto(f"{stage.url}/web/flows")
    expect(page.locator(".live span")).to_have_text("live")
    row = page.locator("#arcs [data-row='ferry:full']")
    expect(row).to_contain_text("enabled")
    expect(row.get_by_role("button")).to_have_count(0)
    expect(page.locator("#change")).to_contain_text("The domain allows it to keeper.")
    screen(page, "flows")
    with engine.new_context() as context:
        mine = context.new_page()
        mine.set_default_timeout(SECONDS)
        sign_in(mine, stage.url, "keeper")
        mine.goto(f"{stage.url}/web/flows")
        mine.get_by_role("button", name="Disable full").click()
        expect(mine.get_by_role("status").filter(has_text="disableArc in ferry")).to_be_visible()
        mine.get_by_label("New arc").fill("few")
        mine.get_by_label("from", exact=True).fill("Crossings")
        mine.get_by_label("to", exact=True).fill("Full")
        mine.get_by_label("Pattern").fill("[cars: c < 5]")
        mine.get_by_role("button", name="Add the arc").click()
        expect(mine.get_by_role("status").filter(has_text="addArc in ferry")).to_be_visible()
    expect(row).to_contain_text("disabled")  # here, without a reload
    expect(page.locator("#arcs")).to_contain_text("[cars: c < 5]")
    expect(page.locator("#meta")).to_contain_text("DisableArc")
    room.flows.publish_many("Crossings", [{"boat": "Ida", "cars": 3}, {"boat": "Ann", "cars": 200}])
    room.run(until_idle=True)
    assert [message.value["cars"] for message in room.queues.peek("Full")] == [3]
