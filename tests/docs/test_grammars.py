"""Colours in editors: the TextMate grammars know every word of the languages, and read every example to its end."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.docs.test_languages import PAGES, Language
from tests.docs.textmate import SYNTAXES, Grammar, Token

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(file for suffix in PAGES for file in (ROOT / "examples").rglob(f"*.{suffix}"))
EDITOR = ROOT / "editors" / "vscode"
#: Names that a definition gives, found by what stands before them.
DECLARED = {
    "qdl": r"(?m)^\s*0[1-4]\s+[A-Z0-9-]+\s*\((\S+)\)",
    "demaq": r"(?m)^create (?:queue|rule|property|slicing|collection|module) ([\w-]+)",
    "flow": r"(?m)^(?:domain|space|arc|table)\s+(\w+)",
    "form": r"(?m)^\s*(?:type|procedure|counter|precondition|action|destination)\s+([\w-]+)",
}
OUTSIDE = re.compile(r"^\*[^\n]*|\(:.*?:\)|#[^\n]*", re.MULTILINE | re.DOTALL)


def read(suffix: str, text: str) -> tuple[Grammar, list[Token]]:
    grammar = Grammar.of(suffix)
    return grammar, [token for line in grammar.tokens(text) for token in line]


@pytest.mark.parametrize("suffix", PAGES)
def test_every_word_of_a_language_has_a_colour(suffix: str) -> None:
    language = Language.of(suffix)
    _, tokens = read(suffix, language.example)
    coloured = {token.text.strip() for token in tokens if len(token.scopes) > 1 and not token.is_a("comment", "string")}
    words = {word for word in language.words if re.fullmatch(r"[\w-]{2,}", word)}
    plural = {word for word in words if f"{word}s" in coloured}
    inside = {"using", "policy"} if suffix == "demaq" else set()  # in the example they stand in a comment
    assert words - coloured - plural - inside == set()


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.name)
def test_an_example_is_read_to_its_end(file: Path) -> None:
    suffix, text = file.suffix[1:], file.read_text()
    grammar, tokens = read(suffix, text)
    opened = [level for level in grammar.open[1:] if level.end not in ("$", "(?!)")]
    assert opened == [], "a string, comment or element that the grammar never closes"
    names = {token.text for token in tokens if token.is_a("entity.name")}
    declared = set(re.findall(DECLARED[suffix], OUTSIDE.sub("", text)))
    assert declared
    assert declared <= names


def test_comments_strings_and_text_have_no_keywords() -> None:
    _, tokens = read("demaq", '(: create (: queue :) rule :)\n<p>if it\'s {//by} then</p> "for ""all"" if"')
    assert [token.text for token in tokens if token.is_a("keyword")] == ["//"]
    _, tokens = read("form", 'procedure p at Desk\n  action a on m\n    Note: ship it "on" time # copy\n')
    assert [token.text for token in tokens if token.is_a("keyword")] == ["procedure", "at", "action", "on"]
    _, tokens = read("qdl", '* PASSWORD\n01 INPUT-QUEUE (IS) COMMAND LINE IS "IS 99"\n99\nPASSWORD IS\n')
    assert [token.text for token in tokens if token.is_a("keyword")] == ["INPUT-QUEUE", "COMMAND", "LINE", "IS", "99"]
    _, tokens = read("flow", "space by : [from: int, to: string] # merge\n")
    assert [token.text for token in tokens if token.is_a("keyword")] == ["space"]


def test_the_extension_names_what_is_there() -> None:
    contributed = json.loads((EDITOR / "package.json").read_text())["contributes"]
    assert {name[1:] for each in contributed["languages"] for name in each["extensions"]} == set(PAGES)
    assert {(EDITOR / each["path"]).name for each in contributed["grammars"]} == {f.name for f in SYNTAXES.iterdir()}
    for language in contributed["languages"]:
        assert json.loads((EDITOR / language["configuration"]).read_text())["brackets"]
    for each in contributed["grammars"]:
        assert json.loads((EDITOR / each["path"]).read_text())["scopeName"] == each["scopeName"]


ORACLE = """
const fs = require("fs"), tm = require("vscode-textmate"), onig = require("vscode-oniguruma");
const wasm = fs.readFileSync(require.resolve("vscode-oniguruma/release/onig.wasm"));
onig.loadWASM(wasm.buffer.slice(wasm.byteOffset, wasm.byteOffset + wasm.byteLength)).then(async () => {
  const library = Promise.resolve({
    createOnigScanner: sources => new onig.OnigScanner(sources), createOnigString: text => new onig.OnigString(text) });
  const [, , syntaxes, ...files] = process.argv, answer = {};
  const registry = new tm.Registry({onigLib: library, loadGrammar: async scope => {
    const path = `${syntaxes}/${scope.split(".")[1]}.tmLanguage.json`;
    return tm.parseRawGrammar(fs.readFileSync(path, "utf8"), path); }});
  for (const file of files) {
    const grammar = await registry.loadGrammar("source." + file.split(".").pop());
    let state = tm.INITIAL;
    answer[file] = fs.readFileSync(file, "utf8").replace(/\\n$/, "").split("\\n").map(line => {
      const read = grammar.tokenizeLine(line, state); state = read.ruleStack;
      return read.tokens.map(t => [line.slice(t.startIndex, t.endIndex), t.scopes]).filter(t => t[0]); });
  }
  console.log(JSON.stringify(answer));
});
"""


def joined(tokens: list[tuple[str, tuple[str, ...]]]) -> list[tuple[str, tuple[str, ...]]]:
    """Neighbours of the same kind as one."""
    found: list[tuple[str, tuple[str, ...]]] = []
    for text, scopes in tokens:
        if found and found[-1][1] == scopes:
            found[-1] = (found[-1][0] + text, scopes)
        else:
            found.append((text, scopes))
    return found


@pytest.mark.slow
def test_the_editor_s_own_reader_sees_the_same(tmp_path: Path) -> None:
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("node is not installed")
    got = subprocess.run(
        [npm, "install", "--no-audit", "--no-fund", "vscode-textmate@9", "vscode-oniguruma@2"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    if got.returncode:
        pytest.skip(f"vscode-textmate cannot be had: {got.stderr[-200:]}")
    (tmp_path / "oracle.js").write_text(ORACLE)
    pages = []
    for suffix in PAGES:
        pages.append(tmp_path / f"page.{suffix}")
        pages[-1].write_text(Language.of(suffix).example)
    files = [*EXAMPLES, *pages]
    ran = subprocess.run(
        ["node", "oracle.js", str(SYNTAXES), *map(str, files)], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    answer = json.loads(ran.stdout)
    for file in files:
        ours = Grammar.of(file.suffix[1:]).tokens(file.read_text())
        for number, (line, theirs) in enumerate(zip(ours, answer[str(file)], strict=True), 1):
            mine = joined([(token.text, token.scopes) for token in line])
            assert mine == joined([(text, tuple(scopes)) for text, scopes in theirs]), f"{file.name}:{number}"
