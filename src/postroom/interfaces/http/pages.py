"""The documentation of a server as HTML pages, which load nothing from elsewhere."""

from __future__ import annotations

import json
from functools import cache
from html import escape
from typing import Any

from postroom import __version__
from postroom.interfaces.http.contract import openapi
from postroom.interfaces.http.handling.responses import Header

_HTML: Header = (b"content-type", b"text/html; charset=utf-8")
#: Nothing is loaded, and nothing runs.
_POLICY: Header = (b"content-security-policy", b"default-src 'none'; style-src 'unsafe-inline'")
_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
code, pre { font: 14px/1.4 ui-monospace, monospace; } pre { background: #8881; padding: .6rem; overflow-x: auto; }
h3 { margin: 2rem 0 0; } table { border-collapse: collapse; } td, th { padding: .1rem .8rem .1rem 0; text-align: left; }
@media (prefers-color-scheme: dark) { body { background: #111; color: #ddd; } a { color: #8cf; } }
"""


def find(path: str) -> tuple[int, bytes, list[Header]] | None:
    """A page by its path: ``/docs``, or below it the operations on queues, on messages, and so on."""
    described = openapi.document()
    tags = sorted({method["tags"][0] for methods in described["paths"].values() for method in methods.values()})
    if path == "/docs":
        return 200, _contents(), [_HTML, _POLICY]
    tag = path.removeprefix("/docs/")
    return (200, _about(tag), [_HTML, _POLICY]) if path.startswith("/docs/") and tag in tags else None


@cache
def _contents() -> bytes:
    rows = [
        f"<tr><td><code>{method.upper()}</code></td>"
        f"<td><a href='docs/{operation['tags'][0]}#{operation['operationId']}'><code>{escape(path)}</code></a></td>"
        f"<td>{escape(operation['summary'])}</td></tr>"
        for path, methods in openapi.document()["paths"].items()
        for method, operation in methods.items()
    ]
    about = (
        "<p>Every request shows a token: <code>Authorization: Bearer TOKEN</code>. A refusal is "
        "<code>application/problem+json</code>. <a href='openapi.json'>openapi.json</a> says the same for programs.</p>"
    )
    return _page("Operations", f"{about}<table>{''.join(rows)}</table>")


@cache
def _about(tag: str) -> bytes:
    lines = [
        _operation(method, path, operation)
        for path, methods in openapi.document()["paths"].items()
        for method, operation in methods.items()
        if operation["tags"][0] == tag
    ]
    return _page(tag, f"<p><a href='../docs'>All operations</a></p>{''.join(lines)}")


def _operation(method: str, path: str, operation: dict[str, Any]) -> str:
    content = operation.get("requestBody", {}).get("content", {})
    body = content.get("application/json", {})
    schema = body.get("schema", {})
    rows = [
        (parameter["name"], parameter["in"], parameter["required"], parameter["schema"])
        for parameter in operation["parameters"]
    ]
    rows += [
        (name, "body", name in schema.get("required", ()), part) for name, part in schema.get("properties", {}).items()
    ]
    parameters = "".join(
        f"<tr><td><code>{escape(name)}</code></td><td>{where}</td><td>{'required' if required else ''}</td>"
        f"<td>{escape(_type(part))}</td></tr>"
        for name, where, required, part in rows
    )
    return (
        f"<h3 id='{operation['operationId']}'><code>{method.upper()} {escape(path)}</code></h3>"
        f"<p>{escape(operation['summary'])} {escape(operation['description'])}</p>"
        f"<table>{parameters}</table><pre>{escape(_curl(method, path, operation, body.get('example')))}</pre>"
    )


def _type(schema: dict[str, Any]) -> str:
    type = schema.get("type") or ("anything" if not schema else "number or true")
    return f"{type} ({schema['format']})" if "format" in schema else str(type)


def _curl(method: str, path: str, operation: dict[str, Any], example: Any) -> str:
    query = {}
    for parameter in operation["parameters"]:
        if "example" in parameter and parameter["in"] == "path":
            path = path.replace("{" + parameter["name"] + "}", str(parameter["example"]))
        elif "example" in parameter and parameter["in"] == "query":
            query[parameter["name"]] = str(parameter["example"]).lower()
    asked = "?" + "&".join(f"{name}={value}" for name, value in query.items()) if query else ""
    data = f" -d {_quoted(json.dumps(example, ensure_ascii=False))}" if example is not None else ""
    verb = "" if (method == "get") == (not data) and method in ("get", "post") else f" -X {method.upper()}"
    return f'curl -H "Authorization: Bearer $TOKEN"{verb}{data} {_quoted("$POSTROOM_URL" + path + asked)}'


def _quoted(text: str) -> str:
    if text.startswith("$"):
        return f'"{text}"'
    return "'" + text.replace("'", "'\\''") + "'"


def _page(title: str, body: str) -> bytes:
    head = f"<meta charset='utf-8'><title>{escape(title)} - Postroom</title><style>{_STYLE}</style>"
    return (
        f"<!doctype html><html lang='en'><head>{head}</head><body><h1>Postroom {__version__}: {escape(title)}</h1>"
        f"{body}</body></html>"
    ).encode()
