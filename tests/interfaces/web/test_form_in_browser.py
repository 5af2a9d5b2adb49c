"""Forms in a real browser: what only a browser shows of how they are drawn, kept as drafts and printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser as Chromium
from playwright.sync_api import Page, expect
from tests.interfaces.http.conftest import Served
from tests.interfaces.web.browsing import person
from tests.interfaces.web.conftest import PASSWORD, without_complaints

NARROW = """type RECEIPT
| Nr: ____   Paid on: __________ |
| Sum: ______ Said: ____________ |
field Nr      int     free
field Paid on date    free
field Sum     decimal free
field Said    string  required
"""


@pytest.fixture(scope="module")
def receipts(stage: Served, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A form with a blank for a date that has no room for the sign of a calendar."""
    file: Path = tmp_path_factory.mktemp("receipts") / "receipt.form"
    file.write_text(NARROW)
    stage.room.load(file)
    return f"{stage.url}/web/desk/Director"


#: What a browser shows over the page cannot be seen by a test; that it is asked for, with which date, can.
PICKER = "HTMLInputElement.prototype.showPicker = function () { window.picked = `${this.type} ${this.value}`; }"


def test_a_date_is_picked_from_a_calendar(stage: Served, page: Page) -> None:
    page.add_init_script(PICKER)
    page.goto(f"{stage.url}/web/desk/Director/new/CLAIM")
    field = page.get_by_label("Loss Date:")
    field.fill("2026-11-17")
    page.get_by_role("button", name="Choose Loss Date").click()
    assert page.evaluate("picked") == "date 2026-11-17"  # it opens at the date that stands there
    page.locator(".pick input").fill("2026-12-24", force=True)  # as the calendar does it
    expect(field).to_have_value("2026-12-24")
    expect(field).to_be_focused()
    page.get_by_role("button", name="Clear").click()


def test_a_narrow_date_is_picked_by_keys_and_the_page_goes_on(receipts: str, page: Page) -> None:
    """A blank without the button of a calendar once ended the script of the page: no keys, no draft, no print."""
    page.add_init_script(PICKER)
    page.goto(f"{receipts}/new/RECEIPT")
    page.get_by_label("Said:").fill("thanks")
    expect(page.locator("[data-draft-said]")).to_contain_text("draft kept at")
    expect(page.get_by_role("button", name="Choose Paid on")).to_have_count(0)
    page.get_by_label("Paid on:").fill("Nov. 16, 2026")
    page.keyboard.press("Alt+ArrowDown")
    assert page.evaluate("picked") == "date "  # what is written otherwise is no date of a calendar
    page.locator(".pick input").fill("2026-11-17", force=True)
    expect(page.get_by_label("Paid on:")).to_have_value("2026-11-17")
    page.keyboard.press("Control+Enter")
    page.wait_for_url("**/forms/**")
    expect(page.get_by_label("Paid on:")).to_have_value("2026-11-17")


def test_ctrl_enter_saves_also_when_no_blank_has_the_focus(receipts: str, page: Page) -> None:
    page.goto(f"{receipts}/new/RECEIPT")
    page.get_by_label("Said:").fill("thanks")
    page.get_by_label("Said:").blur()
    expect(page.locator("body")).to_be_focused()
    page.keyboard.press("Control+Enter")
    page.wait_for_url("**/forms/**")
    page.locator("main").focus()
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("Saved 0 fields.")).to_be_visible()


def test_ctrl_enter_presses_the_only_button_of_a_small_form(receipts: str, page: Page) -> None:
    """It did nothing in all forms without a main button, such as that for copies."""
    page.goto(f"{receipts}/new/RECEIPT")
    page.get_by_label("Said:").fill("thanks")
    page.keyboard.press("Control+Enter")
    page.wait_for_url("**/forms/**")
    page.get_by_label("Copies").fill("3")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("Made 3 copies: ")).to_be_visible()
    page.get_by_label("Dossier").fill("paid")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("Put into paid.")).to_be_visible()
    page.get_by_role("link", name="Desk", exact=True).last.click()
    page.locator("#held [name=key]").first.check()
    page.get_by_label("or put them into").fill("more")
    page.keyboard.press("Control+Enter")  # the button beside it, not the first of the form
    expect(page.get_by_text("Put 1 form into more.")).to_be_visible()


def test_enter_presses_the_button_of_its_own_line(stage: Served, receipts: str, page: Page) -> None:
    """In the box of the dossier it shipped the form, if a station was left in the box above."""
    director = stage.room.stations.admitted("Director")
    key = director.create("RECEIPT", {"Said": "filed"})
    page.goto(receipts)
    box = page.get_by_role("checkbox", name=f"Choose {key}")
    box.check()
    page.get_by_label("Ship the chosen to").fill("Ben")
    box.press("Enter")
    page.get_by_label("or put them into").fill("filed")
    page.get_by_label("or put them into").press("Enter")
    expect(page.get_by_text("Put 1 form into filed.")).to_be_visible()
    assert director.show(key).key == key
    page.get_by_role("checkbox", name=f"Choose {key}").check()
    page.get_by_label("or put them into").fill("filed")
    page.get_by_label("Ship the chosen to").fill("Ben")
    page.get_by_label("Ship the chosen to").press("Enter")
    expect(page.get_by_text("Shipped 1 form to Ben.")).to_be_visible()


def test_enter_holds_no_queue(stage: Served, page: Page) -> None:
    """A button of danger is pressed by itself."""
    stage.room.queues.create("careful", password="lamp1")
    stage.room.access.grant("clerk", "manage", "careful")
    page.goto(f"{stage.url}/web/queues/careful")
    page.get_by_label("Password of the").fill("lamp1")
    page.get_by_label("Password of the").press("Enter")
    page.get_by_label("Property", exact=True).fill("a")
    page.get_by_label("Property", exact=True).press("Enter")
    page.wait_for_url("**property=a**")
    expect(page.locator("#state")).to_contain_text("open")


def test_what_was_refused_stays_and_says_why_at_its_field(receipts: str, page: Page) -> None:
    page.goto(f"{receipts}/new/RECEIPT")
    page.get_by_label("Said:").fill("thanks")
    page.keyboard.press("Control+Enter")
    page.wait_for_url("**/forms/**")
    page.locator("#count").evaluate("field => { field.form.noValidate = true; field.removeAttribute('max'); }")
    page.get_by_label("Copies").fill("123456")
    page.get_by_role("button", name="Copy", exact=True).click()
    expect(page.get_by_label("Copies")).to_have_value("123456")
    expect(page.get_by_label("Copies")).to_have_accessible_description(
        re.compile("A whole number from 1 to .* is expected")
    )
    expect(page.get_by_label("Dossier")).not_to_have_attribute("aria-invalid", "true")


def test_a_condition_that_is_typed_is_not_asked_yet(stage: Served, page: Page) -> None:
    page.goto(f"{stage.url}/web/desk/Director/query/CLAIM")
    changed = page.get_by_text("What the form says now is not asked yet.")
    page.get_by_role("button", name="Find", exact=False).first.click()
    expect(page.get_by_role("heading", name="Last asked")).to_be_visible()
    expect(changed).to_be_hidden()
    page.get_by_label("Amount:").fill(">5")
    expect(changed).to_be_visible()
    page.get_by_label("Amount:").fill("")
    expect(changed).to_be_hidden()
    page.get_by_role("radio", name="Everywhere").check()
    expect(changed).to_be_visible()
    page.get_by_label("Stations, with commas between").fill("Ben")
    expect(page.get_by_role("radio", name="Some stations")).to_be_checked()  # to fill the box is to mean it


#: The box of a blank, and whether it shows all that is in it.
BLANK = """(blank) => {
  const { width, height, bottom } = blank.getBoundingClientRect();
  return [Math.round(width), Math.round(height), bottom, blank.scrollHeight <= blank.clientHeight + 1];
}"""


def test_a_blank_grows_downwards_with_what_is_written_and_hides_nothing(stage: Served, page: Page) -> None:
    page.goto(f"{stage.url}/web/desk/Director/new/CLAIM")
    blank, below = page.get_by_label("Remarks:"), page.get_by_label("State:")
    width, line, _, _ = blank.evaluate(BLANK)
    blank.press_sequentially("a word and another one; " * 6)
    grown = blank.evaluate(BLANK)
    assert (grown[0], grown[3]) == (width, True)
    assert grown[1] >= 3 * line
    blank.press("Enter")
    blank.press_sequentially("a line of its own")
    _, taller, bottom, is_whole = blank.evaluate(BLANK)
    assert taller > grown[1]
    assert is_whole
    assert below.evaluate("(blank) => blank.getBoundingClientRect().top") >= bottom  # what is below makes room
    blank.fill("")
    assert blank.evaluate(BLANK)[1] == line
    page.get_by_role("button", name="Clear").click()


def test_a_form_is_printed_and_nothing_else(stage: Served, receipts: str, page: Page) -> None:
    words = "printed in full, " * 12
    key = stage.room.stations.admitted("Director").create("RECEIPT", {"Said": words, "Sum": 5})
    mail = stage.room.stations.admitted("Director").create("RECEIPT", {"Said": words})
    stage.room.stations.admitted("Director").ship(mail, "Ben")
    page.add_init_script("window.prints = 0; window.print = () => { window.prints += 1; }")
    page.emulate_media(media="print", color_scheme="dark")
    for address in (f"{receipts}/forms/{key}", f"{stage.url}/web/trace/{key}", f"{stage.url}/web/desk/Ben?mail={mail}"):
        page.goto(address)
        expect(page.locator(".paper").first).to_be_visible()
        expect(page.locator(".paper")).to_contain_text("RECEIPT")
        expect(page.locator(".paper")).to_contain_text(words.strip())
        seen = page.evaluate(
            "[...document.querySelectorAll('body *')].filter((each) => each.checkVisibility()"
            " && !each.closest('.paper') && !each.querySelector('.paper')).map((each) => each.outerHTML.slice(0, 80))"
        )
        assert seen == [], address
        said = page.locator(".paper :is(textarea, .typed)").filter(has_text="printed")
        assert said.evaluate(BLANK)[3], address
        colours = "(blank) => [getComputedStyle(blank).color, getComputedStyle(blank).backgroundColor]"
        assert said.evaluate(colours) == ["rgb(0, 0, 0)", "rgb(255, 255, 255)"]  # also of a dark page
    page.goto(f"{stage.url}/web/overview")  # a page without a form is printed as it is
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    expect(page.locator(".bar")).to_be_hidden()
    page.emulate_media(media="screen", color_scheme="light")
    page.goto(f"{receipts}/forms/{key}")
    page.get_by_role("button", name="Print").click()
    assert page.evaluate("prints") == 1


def test_a_long_text_has_the_whole_width_in_print(stage: Served, receipts: str, page: Page) -> None:
    """Two thousand characters took four sheets of paper in a narrow column."""
    director = stage.room.stations.admitted("Director")
    page.emulate_media(media="print")
    for text, share in (("short", 0.5), ("a long text, " * 150, 1)):
        key = director.create("RECEIPT", {"Said": text})
        page.goto(f"{receipts}/forms/{key}")
        said, line = (page.locator(f".paper {name}").last.bounding_box() for name in (".row .typed", ".row"))
        assert said is not None
        assert line is not None
        assert (said["width"] > line["width"] * 0.95) == (share == 1)


def test_what_is_not_saved_is_marked_in_print(receipts: str, page: Page) -> None:
    page.goto(f"{receipts}/new/RECEIPT")
    mark = "getComputedStyle(document.querySelector('.paper'), '::before').content"
    page.get_by_label("Said:").fill("thanks")
    assert page.evaluate(mark) == "none", "on the screen a line below says so"
    page.emulate_media(media="print")
    assert page.evaluate(mark) == '"Draft, not saved"'
    page.emulate_media(media="screen")
    page.keyboard.press("Control+Enter")
    page.wait_for_url("**/forms/**")
    page.emulate_media(media="print")
    assert page.evaluate(mark) == "none"


def test_a_form_is_not_shipped_before_its_draft_is_saved(stage: Served, receipts: str, page: Page) -> None:
    """Also if the draft was written before, and is brought back with the page."""
    key = stage.room.stations.admitted("Director").create("RECEIPT", {"Said": "draft"})
    page.goto(f"{receipts}/forms/{key}")
    ship = page.get_by_role("button", name="Ship")
    expect(ship).to_be_enabled()
    expect(page.get_by_text("Save it first.")).to_be_hidden()
    page.get_by_label("Sum:").fill("7")
    expect(ship).to_be_disabled()
    expect(page.get_by_text("Save it first.")).to_be_visible()  # and it is seen, not by a colour alone
    assert ship.evaluate("(button) => getComputedStyle(button).borderStyle") == "dashed"
    page.goto(receipts)
    page.goto(f"{receipts}/forms/{key}")
    expect(page.get_by_label("Sum:")).to_have_value("7")
    expect(ship).to_be_disabled()
    page.get_by_role("button", name="Save").click()
    expect(ship).to_be_enabled()


def test_a_draft_outlives_a_session_that_has_ended(stage: Served, engine: Chromium, receipts: str) -> None:
    """Nothing was saved, so nothing is lost: after signing in, one is where one was, with what one wrote."""
    stage.room.access.grant("Director", "work", "Director")
    with person(engine, stage.url, "Director") as page:
        page.get_by_role("navigation").get_by_role("link", name="New form").click()
        page.get_by_role("link", name="Fill in RECEIPT").click()
        page.get_by_label("Said:").fill("before the session ended")
        stage.room.access.end_sessions("Director")
        page.get_by_role("button", name="Create").click()
        expect(page.get_by_role("alert")).to_contain_text("Your session has ended. Nothing was changed.")
        page.get_by_label("Name").fill("Director")
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_label("Said:")).to_have_value("before the session ended")
        page.get_by_role("button", name="Create").click()
        page.wait_for_url("**/forms/**")
        page.get_by_role("navigation").get_by_role("link", name="New form").click()
        page.get_by_role("link", name="Fill in RECEIPT").click()
        expect(page.get_by_label("Said:")).to_have_value("")  # it is saved


def test_what_stands_on_a_page_outlives_a_sign_out_in_another_tab(
    stage: Served, engine: Chromium, receipts: str
) -> None:
    """The tab keeps it for the same user, whether it is sent or opened again; nobody else's page has it."""
    stage.room.access.grant("Director", "work", "Director")

    def sign_in(page: Page) -> None:
        page.get_by_label("Name").fill("Director")
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Sign in").click()

    with engine.new_context() as context, without_complaints(context.new_page()) as page:
        for is_sent in (False, True):
            page.goto(f"{receipts}/new/RECEIPT")
            if not is_sent:
                sign_in(page)
            page.get_by_label("Said:").fill("before the other tab signed out")
            other = context.new_page()
            other.goto(f"{stage.url}/web/you")
            other.get_by_role("button", name="Sign out", exact=True).click()
            expect(other.get_by_role("heading", name="Sign in")).to_be_visible()
            if is_sent:
                page.get_by_role("button", name="Create").click()
                expect(page.get_by_role("alert")).to_contain_text("What you have typed is kept in this browser")
            else:
                page.reload()
            other.goto(f"{receipts}/new/RECEIPT")
            sign_in(other)
            expect(other.get_by_label("Said:")).to_have_value("")
            other.close()
            sign_in(page)
            expect(page.get_by_label("Said:")).to_have_value("before the other tab signed out")
            page.get_by_role("button", name="Create").click()
            page.wait_for_url("**/forms/**")
        page.goto(f"{receipts}/new/RECEIPT")
        expect(page.get_by_label("Said:")).to_have_value("")  # it is saved


def test_a_draft_has_all_that_was_written_also_after_an_error_and_after_a_save(receipts: str, page: Page) -> None:
    page.goto(f"{receipts}/new/RECEIPT")
    page.get_by_label("Said:").fill("all of it")
    page.get_by_label("Sum:").fill("much")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_label("Sum:")).to_have_attribute("aria-invalid", "true")
    page.get_by_label("Sum:").fill("7")
    page.goto(f"{receipts}/new/RECEIPT")
    expect(page.get_by_label("Said:")).to_have_value("all of it")
    expect(page.get_by_label("Sum:")).to_have_value("7")
    page.get_by_role("button", name="Create").click()
    page.wait_for_url("**/forms/*")
    page.get_by_label("Sum:").fill("8")
    page.reload()
    expect(page.get_by_label("Sum:")).to_have_value("8")
    expect(page.get_by_role("button", name="Ship")).to_be_disabled()
    page.get_by_role("button", name="Undo changes").click()
    expect(page.get_by_label("Sum:")).to_have_value("7")


def test_a_draft_outlives_a_session_that_ends_on_a_page_that_was_just_saved(
    stage: Served, engine: Chromium, receipts: str
) -> None:
    """The address once told the browser after each sign-in that all was saved."""
    stage.room.access.grant("Director", "work", "Director")
    with person(engine, stage.url, "Director") as page:
        page.get_by_role("navigation").get_by_role("link", name="New form").click()
        page.get_by_role("link", name="Fill in RECEIPT").click()
        page.get_by_label("Said:").fill("one")
        page.get_by_role("button", name="Create").click()
        page.wait_for_url("**/forms/*")
        page.get_by_label("Sum:").fill("2")
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_text("Saved 1 field.")).to_be_visible()
        page.get_by_label("Sum:").fill("3")
        stage.room.access.end_sessions("Director")
        page.get_by_role("button", name="Save").click()
        page.get_by_label("Name").fill("Director")
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_label("Sum:")).to_have_value("3")
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_text("Saved 1 field.")).to_be_visible()
        expect(page.locator("[data-draft-said]")).to_be_empty()


def test_an_address_that_says_saved_takes_no_draft_away(stage: Served, receipts: str, page: Page) -> None:
    director = stage.room.stations.admitted("Director")
    one, other = (director.create("RECEIPT", {"Said": "as it was"}) for _ in range(2))
    page.goto(f"{receipts}/forms/{one}?saved=1")
    page.get_by_label("Sum:").fill("7")
    page.evaluate("document.querySelector('form[data-draft]').dispatchEvent(new Event('submit'))")  # no answer came
    page.goto(f"{receipts}/forms/{other}?saved=1")
    page.goto(f"{receipts}/forms/{one}?saved=1")
    expect(page.get_by_label("Sum:")).to_have_value("7")
    page.get_by_role("button", name="Undo changes").click()


def test_a_draft_stays_when_someone_else_saves_the_form(stage: Served, receipts: str, page: Page) -> None:
    """What one typed stays, what another wrote is seen, and both where both wrote in one field."""
    director = stage.room.stations.admitted("Director")
    key = director.create("RECEIPT", {"Said": "first", "Sum": 1})
    page.goto(f"{receipts}/forms/{key}")
    page.get_by_label("Sum:").fill("7")
    page.get_by_label("Nr:").fill("12")
    director.modify(key, {"Sum": 5, "Paid on": "2026-11-17"})
    page.goto(f"{receipts}/forms/{key}")
    expect(page.get_by_role("alert")).to_contain_text("Someone has written on this form since you began to")
    expect(page.get_by_label("Sum:")).to_have_value("7")
    expect(page.get_by_label("Sum:")).to_have_accessible_description("It says now: 5")
    expect(page.get_by_label("Nr:")).to_have_value("12")
    expect(page.get_by_label("Paid on:")).to_have_value("2026-11-17")
    expect(page.locator(".now")).to_have_count(1)
    page.get_by_label("Nr:").fill("13")
    page.reload()  # and it is said until it is saved
    expect(page.locator(".now")).to_have_text("It says now: 5")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved 2 fields.")).to_be_visible()
    expect(page.get_by_role("alert")).to_be_hidden()
    page.reload()
    expect(page.locator("[data-draft-said]")).to_be_empty()
    assert str(director.show(key).fields["Paid on"]) == "2026-11-17"


def test_what_was_typed_is_shown_when_the_form_has_left(stage: Served, receipts: str, page: Page) -> None:
    director = stage.room.stations.admitted("Director")
    key = director.create("RECEIPT", {"Said": "first"})
    page.goto(f"{receipts}/forms/{key}")
    page.get_by_label("Sum:").fill("7")
    director.ship(key, "Ben")
    page.goto(f"{receipts}/forms/{key}")
    expect(page.get_by_role("alert")).to_contain_text("It is in the mailbox of Ben now.")
    expect(page.locator("[data-draft-gone]")).to_contain_text("Sum7")
    director.take_back([key])
    page.reload()
    expect(page.get_by_label("Sum:")).to_have_value("7")
    page.get_by_role("button", name="Undo changes").click()


def test_a_draft_that_is_saved_already_is_forgotten(stage: Served, receipts: str, page: Page) -> None:
    director = stage.room.stations.admitted("Director")
    key = director.create("RECEIPT", {"Said": "first"})
    page.goto(f"{receipts}/forms/{key}")
    page.get_by_label("Sum:").fill("7")
    director.modify(key, {"Sum": 7})  # as the answer to one's own save may have been lost
    page.goto(f"{receipts}/forms/{key}")
    expect(page.get_by_role("alert")).to_be_hidden()
    expect(page.get_by_role("button", name="Ship")).to_be_enabled()


def test_errors_stand_below_their_line_and_stretch_nothing(receipts: str, page: Page) -> None:
    page.goto(f"{receipts}/new/RECEIPT")
    before = page.locator(".paper").bounding_box()
    for name in ("Nr", "Paid on", "Sum"):
        page.get_by_label(f"{name}:").fill("a text that is none")
    page.get_by_role("button", name="Create").click()
    expect(page.locator(".error")).to_have_count(4)
    expect(page.get_by_label("Nr:")).to_be_focused()
    expect(page.locator("[data-status]")).to_contain_text("a whole number")  # also of the first that is shown
    after = page.locator(".paper").bounding_box()
    assert before is not None
    assert after is not None
    assert after["width"] == before["width"]
    edge = page.get_by_label("Sum:").evaluate("(field) => getComputedStyle(field).borderBottomWidth")
    assert edge == "2px"  # wrong is marked by more than a colour


def test_every_blank_is_underlined(receipts: str, page: Page) -> None:
    page.goto(f"{receipts}/new/RECEIPT")
    edges = page.evaluate(
        "[...document.querySelectorAll('.paper [data-field]')].map((each) => getComputedStyle(each).borderBottomWidth)"
    )
    assert edges == ["1px"] * 4


def test_first_fields_are_seen_on_a_phone_and_in_one_line_beside(stage: Served, receipts: str, page: Page) -> None:
    stage.room.stations.admitted("Director").create("RECEIPT", {"Said": "a long text " * 20})
    page.goto(f"{receipts}?type=RECEIPT")
    first = page.locator("#held .first-fields").first
    for width in (1280, 400):
        page.set_viewport_size({"width": width, "height": 900})
        expect(first).to_contain_text("a long text")
        box = page.locator("#held td.fields").first.bounding_box()
        assert box is not None
        assert box["width"] > 150
        assert box["height"] < 40
    page.set_viewport_size({"width": 1280, "height": 900})
