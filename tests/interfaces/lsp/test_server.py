"""The language server, asked as an editor asks."""

from __future__ import annotations

import asyncio
import io
import sys
from pathlib import Path
from typing import Any

import pytest

from postroom.interfaces.lsp import wire
from postroom.interfaces.lsp.server import Server

PROGRAM = """\
create queue intake kind basic mode persistent
create rule r for intake if (/a) then do enqueue <b/> into intake
"""


def session(*messages: dict[str, Any]) -> tuple[int, list[dict[str, Any]]]:
    """What the server answers to some messages, and how it ends."""
    asked, told = io.BytesIO(), io.BytesIO()
    for message in messages:
        wire.write(asked, message)
    asked.seek(0)
    code = Server(asked, told).run()
    told.seek(0)
    answers = []
    while told.tell() < len(told.getvalue()):
        answers.append(wire.read(told))
    return code, answers


def asked(number: int, method: str, **params: Any) -> dict[str, Any]:
    return {"id": number, "method": method, "params": params}


def opened(uri: str, text: str) -> dict[str, Any]:
    return {"method": "textDocument/didOpen", "params": {"textDocument": {"uri": uri, "text": text}}}


def test_an_editor_asks_about_a_file(tmp_path: Path) -> None:
    uri = (tmp_path / "a b.demaq").as_uri()
    here = {"textDocument": {"uri": uri}, "position": {"line": 1, "character": 20}}
    code, answers = session(
        asked(1, "initialize"),
        opened(uri, PROGRAM),
        asked(2, "textDocument/hover", **here),
        asked(3, "textDocument/definition", **here),
        asked(4, "textDocument/completion", **here),
        {
            "method": "textDocument/didChange",
            "params": {"textDocument": {"uri": uri}, "contentChanges": [{"text": "create queue\n"}]},
        },
        asked(5, "textDocument/rename"),
        {"method": "textDocument/didClose", "params": {"textDocument": {"uri": uri}}},
        asked(6, "textDocument/hover", **here),
        asked(7, "shutdown"),
        asked(8, "textDocument/hover", **here),
        {"method": "exit"},
    )
    assert code == 0
    by_id = {each["id"]: each for each in answers if "id" in each}
    shown = [each["params"]["diagnostics"] for each in answers if "method" in each]
    assert by_id[1]["result"]["capabilities"]["hoverProvider"] is True
    assert by_id[2]["result"]["contents"]["value"] == "queue intake, a b.demaq:1"
    (place,) = by_id[3]["result"]
    assert (place["uri"], place["range"]["start"]["line"]) == (uri, 0)
    assert {(each["label"], each["detail"]) for each in by_id[4]["result"]} >= {("intake", "queue, a b.demaq")}
    assert shown[0] == []
    assert shown[1][0]["source"] == "postroom"
    assert by_id[5]["error"]["code"] == -32601
    assert by_id[6]["result"] is None
    assert by_id[8]["error"]["code"] == -32600


def test_an_editor_that_leaves_without_a_word(tmp_path: Path) -> None:
    assert session(asked(1, "initialize"))[0] == 1
    assert session({"method": "exit"}) == (1, [])


def test_a_message_that_is_no_json_is_refused_and_the_session_goes_on() -> None:
    asked_for, told = io.BytesIO(), io.BytesIO()
    asked_for.write(b"Content-Length: 2\r\n\r\n{]Content-Length: 2\r\n\r\n[]")
    wire.write(asked_for, asked(1, "shutdown"))
    wire.write(asked_for, {"method": "exit"})
    asked_for.seek(0)
    assert Server(asked_for, told).run() == 0
    told.seek(0)
    refused, batch, answer = (wire.read(told) for _ in range(3))
    assert (refused["id"], refused["error"]["code"]) == (None, -32700)
    assert (batch["id"], batch["error"]["code"]) == (None, -32600)
    assert answer == {"jsonrpc": "2.0", "id": 1, "result": None}


@pytest.mark.slow
def test_the_client_of_pygls_gets_diagnostics_and_definitions(tmp_path: Path) -> None:
    from lsprotocol import types
    from pygls.lsp.client import LanguageClient

    async def talk() -> tuple[list[Any], Any, Any]:
        client, told = LanguageClient("test", "1"), asyncio.Event()
        shown: list[Any] = []

        @client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)  # type: ignore[untyped-decorator]
        def _(params: types.PublishDiagnosticsParams) -> None:
            shown.extend(params.diagnostics)
            told.set()

        await client.start_io(sys.executable, "-m", "postroom", "lsp")
        started = types.InitializeParams(capabilities=types.ClientCapabilities(), process_id=None, root_uri=None)
        await client.initialize_async(started)
        client.initialized(types.InitializedParams())
        uri = (tmp_path / "a.demaq").as_uri()
        item = types.TextDocumentItem(uri=uri, language_id="demaq", version=1, text=PROGRAM + "create rule\n")
        client.text_document_did_open(types.DidOpenTextDocumentParams(text_document=item))
        await asyncio.wait_for(told.wait(), 60)
        good = types.VersionedTextDocumentIdentifier(uri=uri, version=2)
        change = types.TextDocumentContentChangeWholeDocument(text=PROGRAM)
        told.clear()
        client.text_document_did_change(types.DidChangeTextDocumentParams(good, [change]))
        await asyncio.wait_for(told.wait(), 60)
        where = {"text_document": types.TextDocumentIdentifier(uri=uri), "position": types.Position(1, 20)}
        hover = await client.text_document_hover_async(types.HoverParams(**where))  # type: ignore[arg-type]
        found = await client.text_document_definition_async(types.DefinitionParams(**where))  # type: ignore[arg-type]
        await client.shutdown_async(None)
        client.exit(None)
        await client.stop()  # type: ignore[no-untyped-call]
        return shown, hover, found

    shown, hover, found = asyncio.run(talk())
    assert [each.range.start.line for each in shown] == [2]
    assert "queue intake" in hover.contents.value
    assert found[0].range.start.line == 0
