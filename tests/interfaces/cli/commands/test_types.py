"""Message types by command: list, export, import."""

from __future__ import annotations

import json
from pathlib import Path

from tests.interfaces.conftest import Run


def test_a_schema_becomes_a_form_and_the_form_a_schema(run: Run, tmp_path: Path) -> None:
    run("queue", "create", "q")
    assert run("type", "list").err.startswith("no type is defined")
    schema = {"title": "T", "type": "object", "properties": {"A": {"type": "integer"}}, "required": ["A"]}
    (tmp_path / "t.json").write_text(json.dumps(schema))
    form = run("type", "import", "t.json")
    assert run("type", "import", "t.json", "--json").json["description"] == form.out
    (tmp_path / "t.form").write_text(form.out)
    assert run("load", "t.form").code == 0
    listed = run("type", "list", "--json").json["types"]
    assert [(each["type"], each["form_fields"][0]["kind"]) for each in listed] == [("T", "int")]
    assert run("type", "list").out.split()[-1] == "A"
    exported = run("type", "export", "T").json
    assert exported == run("type", "export", "T", "--json").json["definition"]
    assert {name: exported[name] for name in schema} == schema
    assert run("type", "export", "T", "--avro").json["type"] == "record"
    (tmp_path / "t.form").write_text(form.out.replace("field A int", "field A string"))
    assert run("load", "t.form").code == 0
    assert len(run("type", "list", "--all", "--json").json["types"]) == 2
    assert len(run("type", "list", "--json").json["types"]) == 1


def test_what_is_no_schema_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "odd.json").write_text("{")
    for words, code in (
        (("import", "none.json"), "file-unreadable"),
        (("import", "odd.json"), "file-unreadable"),
    ):
        refused = run("type", *words)
        assert (refused.code, code in refused.err) == (1, True)
    (tmp_path / "odd.json").write_text('{"type": "array"}')
    assert "type-invalid" in run("type", "import", "odd.json", "--name", "T").err
    run("queue", "create", "q")
    assert "type-unknown" in run("type", "export", "NONE").err
