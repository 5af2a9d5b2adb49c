"""All pages, in the order of lookup and navigation."""

from __future__ import annotations

from postroom.interfaces.web import home, you
from postroom.interfaces.web.definitions import flow_page, procedure_page, program_page, template_page
from postroom.interfaces.web.operating import (
    access_page,
    failures,
    journal_page,
    message_page,
    overview,
    queue_page,
    sphere_page,
)
from postroom.interfaces.web.page import Page
from postroom.interfaces.web.stations import desk, dossier, form_page, new_form, query_page, trace
from postroom.interfaces.web.visit import Visit

PAGES: tuple[Page[Visit], ...] = (
    home.PAGE,
    # --- for the office ---
    desk.PAGE,
    new_form.CHOOSE,
    new_form.PAGE,
    form_page.PAGE,
    dossier.PAGE,
    query_page.CHOOSE,
    query_page.EXPORT,
    query_page.PAGE,
    trace.PAGE,
    template_page.PAGE,
    procedure_page.PAGE,
    # --- for operators ---
    overview.PAGE,
    queue_page.PAGE,
    message_page.PAGE,
    failures.PAGE,
    program_page.PAGE,
    flow_page.PAGE,
    sphere_page.PAGE,
    journal_page.PAGE,
    access_page.PAGE,
    # --- for everyone ---
    you.PAGE,
    you.FIND,
)
