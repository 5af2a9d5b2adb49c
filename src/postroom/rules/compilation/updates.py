"""``copy … modify … return`` in XQuery without updates, which Saxon's free edition does not have.

Updates become maps, and a new tree is built from the copy. As in the XQuery Update Facility, all targets refer to the
unchanged copy, updates are applied in its order, and errors have its codes.
"""

from __future__ import annotations

from collections.abc import Iterator

from postroom.rules.compilation.caught import with_caught
from postroom.rules.language.body import Body, Transform, Update
from postroom.rules.language.edits import Edit

#: Raises an error where it stands: functions of ours are given it, so that their errors are told at what calls them.
RAISE = "function($qs:c, $qs:w) { error($qs:c, $qs:w) }"
#: Stands where the functions are put, if a query needs them.
PLACE = "(: updating :)"


def update_edits(body: Body) -> Iterator[Edit]:
    """The edits at the beginnings; those at the ends are among the closings of the body, in order."""
    for transform in body.transforms:
        yield from _transformed(transform)
    for update in body.updates:
        yield from _updated(update)


def _transformed(transform: Transform) -> Iterator[Edit]:
    names = [name for name, _ in transform.variables]
    yield Edit(*transform.keyword, "let")
    for _, value in transform.variables:
        yield Edit(value.start, value.start, f"qs:copied({RAISE}, (")
    yield Edit(*transform.modify, f"let $qs:u := qs:updates({RAISE}, (")
    changed = ", ".join(f"{name} := qs:modified({name}, $qs:u)" for name in names)
    yield Edit(*transform.returns, f"), ({', '.join(names)})) let {changed} return")


def _updated(update: Update) -> Iterator[Edit]:
    if update.middle is None:
        yield Edit(*update.keyword, f"qs:delete({RAISE}, (")
        return
    words = {
        "replace": ("qs:replace", "), ("),
        "value": ("qs:revalue", "), ("),
        "rename": ("qs:rename", f"), qs:named({RAISE}, ("),
    }
    name, between = words.get(update.kind, ("qs:insert", f'), "{update.kind}", ('))
    yield Edit(*update.keyword, f"{name}({RAISE}, (")
    yield Edit(*update.middle, between)


def with_functions(text: str) -> str:
    """A query with the functions that it needs."""
    return text.replace(PLACE, f"{FUNCTIONS if 'qs:copied(' in text else ''}{with_caught(text)}", 1)


_ERROR = """declare function qs:failed($e as function(*), $c as xs:string, $w as xs:string) as item()* {
 $e(QName("http://www.w3.org/2005/xqt-errors", concat("err:", $c)), $w) };"""
_COPIED = """declare function qs:copied($e as function(*), $n as item()*) as node() {
 if (count($n) ne 1 or not($n instance of node()))
 then qs:failed($e, "XUTY0013", "what is copied is one node") else qs:clone($n) };
declare function qs:clone($n as node()) as node() { typeswitch ($n)
 case element() return element {node-name($n)} {qs:scope($n), $n/@*, $n/node()}
 case document-node() return document {$n/node()}
 case attribute() return attribute {node-name($n)} {string($n)} case text() return text {string($n)}
 case comment() return comment {string($n)}
 case processing-instruction() return processing-instruction {name($n)} {string($n)} default return $n };
declare function qs:scope($n as element()) as node()* { for $p in in-scope-prefixes($n)[. ne "xml"]
 return namespace {$p} {namespace-uri-for-prefix($p, $n)} };"""
_PRIMITIVES = """declare function qs:target($e as function(*), $t as item()*, $c as xs:string) as node() {
 if (empty($t)) then qs:failed($e, "XUDY0027", "the target is empty")
 else if (count($t) ne 1 or not($t instance of node())) then qs:failed($e, $c, "the target is one node") else $t };
declare function qs:delete($e as function(*), $t as item()*) as map(*)* { for $n in $t return if ($n instance of node())
 then map {"k": "delete", "t": $n} else qs:failed($e, "XUTY0007", "what is deleted are nodes") };
declare function qs:insert($e as function(*), $s as item()*, $k as xs:string, $t as item()*) as map(*)* {
 let $beside := $k = ("before", "after") let $n := qs:target($e, $t, if ($beside) then "XUTY0006" else "XUTY0005")
 let $a := $s[. instance of attribute()] let $c := qs:content-of($s[not(. instance of attribute())]) return (
 if (some $i in 2 to count($s) satisfies $s[$i] instance of attribute() and not($s[$i - 1] instance of attribute()))
 then qs:failed($e, "XUTY0004", "attributes stand before other nodes") else (),
 if ($beside) then (
 if (not($n instance of element() or $n instance of text() or $n instance of comment()
 or $n instance of processing-instruction())) then qs:failed($e, "XUTY0006", "an insertion beside a node that has none")
 else if (empty($n/..)) then qs:failed($e, "XUDY0029", "an insertion beside a node without a parent")
 else if (exists($a) and not($n/.. instance of element()))
 then qs:failed($e, "XUDY0030", "a document has no attributes")
 else (map {"k": $k, "t": $n, "s": $c}, if ($a) then map {"k": "attributes", "t": $n/.., "s": $a} else ()))
 else if (not($n instance of element() or $n instance of document-node()))
 then qs:failed($e, "XUTY0005", "an insertion into a node that has no content")
 else if (exists($a) and not($n instance of element())) then qs:failed($e, "XUTY0022", "a document has no attributes")
 else (map {"k": $k, "t": $n, "s": $c}, if ($a) then map {"k": "attributes", "t": $n, "s": $a} else ())) };
declare function qs:content-of($s as item()*) as node()* { if (empty($s)) then () else document {$s}/node() };
declare function qs:replace($e as function(*), $t as item()*, $s as item()*) as map(*) {
 let $n := qs:target($e, $t, "XUTY0008") return
 if ($n instance of document-node()) then qs:failed($e, "XUTY0008", "a document is not replaced")
 else if (empty($n/..)) then qs:failed($e, "XUDY0009", "what is replaced has a parent")
 else if ($n instance of attribute()) then (
 if (every $i in $s satisfies $i instance of attribute()) then map {"k": "replace", "t": $n, "s": $s}
 else qs:failed($e, "XUTY0011", "an attribute is replaced by attributes"))
 else if (some $i in $s satisfies $i instance of attribute())
 then qs:failed($e, "XUTY0010", "a node of the content is not replaced by attributes")
 else map {"k": "replace", "t": $n, "s": qs:content-of($s)} };
declare function qs:revalue($e as function(*), $t as item()*, $v as item()*) as map(*) {
 let $n := qs:target($e, $t, "XUTY0008") return
 if ($n instance of document-node()) then qs:failed($e, "XUTY0008", "a document has no value")
 else map {"k": "value", "t": $n, "s": string-join(data($v) ! string(.), " ")} };
declare function qs:named($e as function(*), $n as item()*) as item() {
 if (count(data($n)) ne 1) then qs:failed($e, "XPTY0004", "a node has one name") else $n };
declare function qs:rename($e as function(*), $t as item()*, $names as array(*)) as map(*) {
 let $n := qs:target($e, $t, "XUTY0012") return
 if (not($n instance of element() or $n instance of attribute() or $n instance of processing-instruction()))
 then qs:failed($e, "XUTY0012", "a node without a name is not renamed")
 else map {"k": "rename", "t": $n, "s": if ($n instance of attribute()) then $names(2) else $names(1)} };"""
_APPLIED = """declare function qs:updates($e as function(*), $u as item()*, $copies as node()*) as map(*)* { (
 if (some $i in $u satisfies not($i instance of map(*) and map:contains($i, "k")))
 then qs:failed($e, "XUST0002", "behind modify stand updates") else (),
 for $i in $u where not(some $c in $copies satisfies root($i?t) is $c)
 return qs:failed($e, "XUDY0014", "the target is no node of the copy"),
 for $k in ("rename", "replace", "value")
 let $s := $u[?k = $k]?t where count($s) ne count($s | ()) return qs:failed($e,
 map {"rename": "XUDY0015", "replace": "XUDY0016", "value": "XUDY0017"}($k), concat("two updates ", $k, " one node")),
 for $n in ($u[?k = ("attributes", "rename", "replace", "delete")]?t ! (self::element(), self::attribute()/..)) | ()
 let $c := qs:clash($n, $u)[1] where $c return qs:failed($e, $c, map {
 "XUDY0021": "an element would have two attributes of one name",
 "XUDY0023": "a prefix of a new name means something else there",
 "XUDY0024": "two new names have one prefix with two meanings"}($c)),
 $u) };
declare function qs:modified($n as node(), $u as map(*)*) as node() {
 if (empty($u)) then $n else qs:rebuilt($n, $u) };
declare function qs:edited($n as node(), $u as map(*)*) as node()* {
 let $m := $u[?t is $n] return if (empty($m)) then qs:rebuilt($n, $u) else (
 $m[?k = "before"] ! ?s,
 if ($m?k = "replace") then $m[?k = "replace"] ! ?s else if ($m?k = "delete") then () else qs:rebuilt($n, $u),
 $m[?k = "after"] ! ?s) };
declare function qs:bound($name as xs:QName) as xs:string {
 concat(prefix-from-QName($name), "=", namespace-uri-from-QName($name)) };
declare function qs:clash($n as element(), $u as map(*)*) as xs:string* {
 let $m := $u[?t is $n] let $name := $m[?k = "rename"] ! ?s
 let $same := $n/@*[not(some $i in $u satisfies $i?t is .)]
 let $new := (($n/@* except $same) ! qs:edited(., $u), $m[?k = "attributes"] ! ?s)
 let $names := distinct-values(($name, $new[namespace-uri()] ! node-name(.)) ! qs:bound(.)) return (
 if (some $b in $names satisfies substring-before($b, "=") = in-scope-prefixes($n)
 and namespace-uri-for-prefix(substring-before($b, "="), $n) != substring-after($b, "=")) then "XUDY0023" else (),
 if (count(distinct-values($names ! substring-before(., "="))) ne count($names)) then "XUDY0024" else (),
 if (count(distinct-values(($same, $new) ! node-name(.))) ne count(($same, $new))) then "XUDY0021" else ()) };
declare function qs:rebuilt($n as node(), $u as map(*)*) as node()? {
 let $m := $u[?t is $n] let $name := ($m[?k = "rename"] ! ?s, node-name($n))[1]
 let $value := if ($m?k = "value") then $m[?k = "value"] ! ?s else string($n) return typeswitch ($n)
 case document-node() return document {qs:inside($n, $m, $u)}
 case element() return element {$name} {
 qs:scope($n)[not(name(.) = prefix-from-QName($name) or (name(.) = "" and empty(prefix-from-QName($name))))],
 $n/@* ! qs:edited(., $u), $m[?k = "attributes"] ! ?s, qs:inside($n, $m, $u)}
 case attribute() return attribute {$name} {$value}
 case text() return if ($value = "") then () else text {$value} case comment() return comment {$value}
 case processing-instruction() return processing-instruction {string($name)} {$value} default return $n };
declare function qs:inside($n as node(), $m as map(*)*, $u as map(*)*) as node()* {
 if ($m?k = "value") then text {$m[?k = "value"] ! ?s}
 else ($m[?k = "first"] ! ?s, $n/node() ! qs:edited(., $u), $m[?k = "into"] ! ?s, $m[?k = "last"] ! ?s) };"""
FUNCTIONS = " ".join(f"{_ERROR} {_COPIED} {_PRIMITIVES} {_APPLIED}".split("\n"))
