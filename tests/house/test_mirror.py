"""The test of a file is found by its name: ``src/postroom/a/b.py`` is tested by ``tests/a/test_b.py``."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "postroom"
TESTS = ROOT / "tests"
#: Folders whose tests are about the whole, or about a promise, and not about one module.
WHOLE = {"conformance", "docs", "examples", "faults", "golden", "histories", "house", "mixture", "oracle", "simulation"}
#: Tests of a behaviour that several modules bring about together, beside those of the modules.
BEHAVIOURS = set(
    """
    diagnosis/test_false_alarms.py engine/test_at_once.py engine/test_engine.py engine/test_several.py
    engine/test_poison.py flows/test_flowing.py
    flows/test_order.py gateways/soap/test_gsoap.py gateways/soap/test_wss4j.py
    gateways/test_error_schema.py gateways/test_others.py
    store/postgres/test_calm.py store/postgres/test_changes.py
    interfaces/cli/test_documents.py interfaces/cli/test_overwriting.py interfaces/cobol/test_family.py
    interfaces/cobol/test_kills.py interfaces/cobol/test_nist.py
    interfaces/cobol/test_programs.py interfaces/web/test_stories.py
    interfaces/web/test_every_page.py interfaces/web/test_form_in_browser.py interfaces/web/test_scale.py
    interfaces/web/test_labels_in_browser.py interfaces/web/test_payloads.py interfaces/web/test_taking_back.py
    interfaces/http/test_both.py interfaces/http/test_unread.py interfaces/http/test_whole_interface.py
    interfaces/http/test_wrong_calls.py
    queues/test_states.py room/test_text.py
    rules/compilation/test_update_suite.py rules/test_absence.py rules/test_grammar.py rules/test_made.py
    rules/test_paper.py rules/test_places.py
    rules/test_time.py spheres/test_enumeration.py spheres/test_errors.py spheres/test_frozen.py
    spheres/test_giving_back.py spheres/test_histories.py spheres/test_invariants.py spheres/test_load.py
    spheres/test_mail.py spheres/test_refusals.py spheres/test_rules.py spheres/test_travel.py
    spheres/test_undo.py stations/procedures/test_alike_on_satellites.py stations/procedures/test_live.py
    stations/procedures/test_nodes.py stations/procedures/test_odd.py stations/test_live.py
    stations/test_movement.py stations/test_movement_in_stores.py stations/test_random_conditions.py
    room/test_wrong_arguments.py stations/test_secrets.py store/test_full_disk.py store/test_migrations.py
    store/postgres/test_leases.py store/test_rot.py test_side_by_side.py test_slices.py
    """.split()
)
#: Modules that have no test of their own name, and where they are tested.
ELSEWHERE = {
    **{
        f"errors/{name}": "errors/test_errors.py"
        for name in (
            "bodies definitions engine gateways messages queues root servers spheres stations stores streams".split()
        )
    },
    **{f"interfaces/http/{name}": "interfaces/http/test_app.py" for name in ("handling/responses", "services")},
    **{f"interfaces/web/{name}": "interfaces/web/test_site.py" for name in "home page registry".split()},
    "interfaces/web/stations/dossier": "interfaces/web/stations/test_desk.py",
    "interfaces/web/stations/new_form": "interfaces/web/stations/test_form_page.py",
    "room/parts": "room/test_opening.py",
    **{f"aio/{name}": "aio/test_rooms.py" for name in ("opening", "parts")},
}
MODULES = [
    str(file.relative_to(SOURCE).with_suffix(""))
    for file in sorted(SOURCE.rglob("*.py"))
    if file.name not in ("__init__.py", "__main__.py") and file.parent.name != "migrations"
]


def mirrored(module: str) -> Path:
    path = Path(module)
    return TESTS / path.parent / f"test_{path.name}.py"


@pytest.mark.parametrize("module", MODULES)
def test_every_module_has_a_test_of_its_name(module: str) -> None:
    test = TESTS / ELSEWHERE[module] if module in ELSEWHERE else mirrored(module)
    assert test.is_file(), f"write {test.relative_to(ROOT)}"
    assert "def test_" in test.read_text()


def test_every_test_has_the_name_of_a_module_or_is_listed() -> None:
    known = {mirrored(module) for module in MODULES}
    files = [file for file in TESTS.rglob("test_*.py") if file.relative_to(TESTS).parts[0] not in WHOLE]
    others = {str(file.relative_to(TESTS)) for file in files if file not in known}
    assert others == BEHAVIOURS | set(ELSEWHERE.values()) - {str(file.relative_to(TESTS)) for file in known}


def test_nothing_is_listed_that_is_not_there() -> None:
    assert {name for name in BEHAVIOURS if not (TESTS / name).is_file()} == set()
    assert {module for module in ELSEWHERE if mirrored(module).is_file() or module not in MODULES} == set()
    assert {folder for folder in WHOLE if not (TESTS / folder).is_dir()} == set()


def test_every_test_that_a_page_names_is_there() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    named = {name for page in pages for name in re.findall(r"\btests/[\w/]+\.py\b", page.read_text())}
    assert len(named) > 30
    assert {name for name in named if not (ROOT / name).is_file()} == set()
