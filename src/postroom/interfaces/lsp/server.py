"""Answers an editor: problems, hover, definitions, completion."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from postroom.engine.language import Symbol
from postroom.interfaces.lsp import wire
from postroom.interfaces.lsp.documents import Document
from postroom.model.definitions import Position, Problem
from postroom.version import __version__

_NOT_JSON = -32700
_METHOD_NOT_FOUND = -32601
_INVALID_REQUEST = -32600
_KINDS = {"queue": 7, "space": 7, "type": 7, "field": 5, "rule": 3, "arc": 3, "procedure": 3}  # of completion items


class Server:
    """One editor's session."""

    def __init__(self, reader: IO[bytes], writer: IO[bytes]) -> None:
        self._reader = reader
        self._writer = writer
        self._documents: dict[str, Document] = {}
        self._shut_down = False
        self._answers: dict[str, Callable[[Any], Any]] = {
            "initialize": self._initialize,
            "shutdown": self._shutdown,
            "textDocument/hover": self._hover,
            "textDocument/definition": self._definition,
            "textDocument/completion": self._completion,
        }
        self._notices: dict[str, Callable[[Any], None]] = {
            "textDocument/didOpen": self._opened,
            "textDocument/didChange": self._changed,
            "textDocument/didClose": self._closed,
        }

    def run(self) -> int:
        """Serve until the editor says exit; returns 1 if it disconnects instead."""
        while True:
            try:
                message = wire.read(self._reader)
            except wire.Closed:
                return 1
            except wire.Malformed as error:
                self._refuse(None, _NOT_JSON, str(error))
                continue
            if not isinstance(message, dict):
                self._refuse(None, _INVALID_REQUEST, "a message is a JSON object; batches are not supported")
                continue
            if message.get("method") == "exit":
                return 0 if self._shut_down else 1
            self._handle(message)

    def _handle(self, message: dict[str, Any]) -> None:
        method, number = message.get("method", ""), message.get("id")
        if number is None:
            notice = self._notices.get(method)
            if notice is not None:
                notice(message.get("params"))
            return
        answer = self._answers.get(method)
        if answer is None or (self._shut_down and method != "shutdown"):
            code = _METHOD_NOT_FOUND if answer is None else _INVALID_REQUEST
            self._refuse(number, code, f"cannot do {method}")
            return
        wire.write(self._writer, {"id": number, "result": answer(message.get("params"))})

    def _refuse(self, number: Any, code: int, why: str) -> None:
        wire.write(self._writer, {"id": number, "error": {"code": code, "message": why}})

    def _initialize(self, _: Any) -> Any:
        can = {"textDocumentSync": 1, "hoverProvider": True, "definitionProvider": True, "completionProvider": {}}
        return {"capabilities": can, "serverInfo": {"name": "postroom", "version": __version__}}

    def _shutdown(self, _: Any) -> None:
        self._shut_down = True

    # --- files ---

    def _opened(self, params: Any) -> None:
        self._show(params["textDocument"]["uri"], params["textDocument"]["text"])

    def _changed(self, params: Any) -> None:
        self._show(params["textDocument"]["uri"], params["contentChanges"][-1]["text"])

    def _closed(self, params: Any) -> None:
        self._documents.pop(params["textDocument"]["uri"], None)

    def _show(self, uri: str, text: str) -> None:
        document = self._documents.setdefault(uri, Document(_path(uri), text))
        document.text = text
        told = [_diagnostic(problem, text) for problem in document.problems()]
        about = {"uri": uri, "diagnostics": told}
        wire.write(self._writer, {"method": "textDocument/publishDiagnostics", "params": about})

    # --- questions ---

    def _found(self, params: Any) -> tuple[Document | None, list[Symbol]]:
        document = self._documents.get(params["textDocument"]["uri"])
        place = params["position"]
        word = None if document is None else document.word(place["line"], place["character"])
        return document, [] if document is None or word is None else document.defined(word)

    def _hover(self, params: Any) -> Any:
        _, symbols = self._found(params)
        lines = [
            f"{symbol.what} {symbol.name}, {Path(symbol.position.file).name}:{symbol.position.line}"
            for symbol in symbols
        ]
        return {"contents": {"kind": "plaintext", "value": "\n".join(lines)}} if lines else None

    def _definition(self, params: Any) -> Any:
        document, symbols = self._found(params)
        if document is None:
            return []
        return [{"uri": _uri(document, symbol.position), "range": _range(symbol.position)} for symbol in symbols]

    def _completion(self, params: Any) -> Any:
        document = self._documents.get(params["textDocument"]["uri"])
        if document is None:
            return []
        known = {(symbol.name, symbol.what): symbol for symbol in document.known()}
        return [
            {"label": name, "kind": _KINDS.get(what, 1), "detail": f"{what}, {Path(symbol.position.file).name}"}
            for (name, what), symbol in sorted(known.items(), key=lambda item: item[0])
        ]


def _uri(document: Document, position: Position) -> str:
    return (document.path.parent / Path(position.file).name).as_uri()


def _path(uri: str) -> Path:
    """The file of a URI, which may be percent-encoded."""
    encoded = re.sub("^file://[^/]*", "", uri).encode()
    return Path(os.fsdecode(re.sub(b"%([0-9A-Fa-f]{2})", lambda match: bytes.fromhex(match[1].decode()), encoded)))


def _range(position: Position, end: int | None = None) -> dict[str, Any]:
    line, start = max(position.line - 1, 0), max(position.column - 1, 0)
    return {"start": {"line": line, "character": start}, "end": {"line": line, "character": max(end or start, start)}}


def _diagnostic(problem: Problem, text: str) -> dict[str, Any]:
    lines = text.split("\n")
    at = problem.position.line - 1
    end = len(lines[at]) if 0 <= at < len(lines) else None
    about = {"severity": 1, "source": "postroom", "code": problem.rule, "message": problem.what}
    return {"range": _range(problem.position, end), **about}
