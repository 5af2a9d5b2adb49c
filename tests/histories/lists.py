"""A checker of lists that are only appended to and read: does one order of all transactions explain what was seen?

Transactions depend on each other: one appends behind another (ww), reads what another appended (wr), or reads before
another appends (rw); and one was over before another began (rt). If these dependencies have a cycle, there is no order.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from tests.histories.record import FAIL, Operation

Graph = dict[int, dict[int, str]]


def check(history: Sequence[Operation], final: Mapping[str, Sequence[str]]) -> list[str]:
    """What is wrong; ``final`` is what each list was at the end."""
    calls = [each for each in history if each.seen or any(queue in final for queue, _ in each.sent)]
    return [*_contents(calls, final), *_cycles(calls, final)]


def _contents(calls: Sequence[Operation], final: Mapping[str, Sequence[str]]) -> Iterator[str]:
    writer = {(queue, value): each for each in calls for queue, value in each.sent}
    for queue, values in final.items():
        yield from (f"{queue}: {value} was never sent" for value in values if (queue, value) not in writer)
        yield from (f"{queue}: {value} is there twice" for value, times in Counter(values).items() if times > 1)
    present = {(queue, value) for queue, values in final.items() for value in values}
    for place, each in writer.items():
        if each.happened and place not in present:
            yield f"{place[0]}: {place[1]} is lost, and its send returned"
        if each.outcome == FAIL and place in present:
            yield f"{place[0]}: {place[1]} is there, and its send failed"
        if place in present and any(other not in present for other in each.sent):
            yield f"{place[0]}: {place[1]} is there without what was sent with it"
    for each in calls:
        for queue, seen in each.seen.items():
            if list(final[queue][: len(seen)]) != list(seen):
                yield f"{queue}: {each.process} read {seen[-3:]}, which the list never was"
            elif seen and _halved(writer.get((queue, seen[-1])), queue, seen):
                yield f"{queue}: {each.process} read {seen[-1]} without what was sent with it"


def _halved(writer: Operation | None, queue: str, seen: Sequence[str]) -> bool:
    return writer is not None and any(value not in seen for where, value in writer.sent if where == queue)


def graph_of(calls: Sequence[Operation], final: Mapping[str, Sequence[str]]) -> Graph:
    writer = {(queue, value): number for number, each in enumerate(calls) for queue, value in each.sent}
    graph: Graph = defaultdict(dict)

    def edge(first: int | None, second: int | None, kind: str) -> None:
        if first is not None and second is not None and first != second:
            graph[first].setdefault(second, kind)

    writers = {queue: [writer.get((queue, value)) for value in values] for queue, values in final.items()}
    for queue, found in writers.items():
        for before, after in pairwise(found):
            edge(before, after, f"ww {queue}")
    for number, each in enumerate(calls):
        for queue, seen in each.seen.items():
            found, length = writers[queue], len(seen)
            edge(found[length - 1] if length else None, number, f"wr {queue}")
            behind = (found[at] for at in range(length, len(found)) if found[at] != number)
            edge(number, next(behind, None), f"rw {queue}")
    for before, after in _in_time(calls):
        edge(before, after, "rt")
    return graph


def _in_time(calls: Sequence[Operation]) -> Iterator[tuple[int, int]]:
    """For each call, the last of each process that was over before it began; others follow from these."""
    ended = sorted(range(len(calls)), key=lambda number: calls[number].ended)
    last: dict[str, int] = {}
    at = 0
    for number in sorted(range(len(calls)), key=lambda number: calls[number].begun):
        while at < len(ended) and calls[ended[at]].ended < calls[number].begun:
            last[calls[ended[at]].process] = ended[at]
            at += 1
        yield from ((before, number) for before in last.values())


def _cycles(calls: Sequence[Operation], final: Mapping[str, Sequence[str]]) -> Iterator[str]:
    present = {(queue, value) for queue, values in final.items() for value in values}
    real = [each for each in calls if each.happened or any(place in present for place in each.sent)]
    graph = graph_of(real, final)
    for members in _components(graph, len(real)):
        yield "a cycle: " + _told(graph, members, real)


def _told(graph: Graph, members: set[int], calls: Sequence[Operation]) -> str:
    """A shortest way round, from one member back to it."""
    start = min(members)
    ways: dict[int, list[tuple[int, str]]] = {start: []}
    todo = [start]
    for node in todo:
        for after, kind in graph[node].items():
            if after == start:
                steps = [*ways[node], (node, kind)]
                return " → ".join(f"{calls[each].process}:{calls[each].verb} {said}" for each, said in steps)
            if after in members and after not in ways:
                ways[after] = [*ways[node], (node, kind)]
                todo.append(after)
    return "…"


def _components(graph: Graph, count: int) -> Iterator[set[int]]:
    """Strongly connected ones with more than one member, after Tarjan; on a stack of our own, for it may be deep."""
    index: dict[int, int] = {}
    low: dict[int, float] = {}
    stack: list[int] = []
    open_: set[int] = set()
    for root in range(count):
        work = [(root, iter(graph.get(root, {})))] if root not in index else []
        while work:
            node, rest = work[-1]
            if node not in index:
                index[node] = len(index)
                low[node] = index[node]
                stack.append(node)
                open_.add(node)
            after = next((each for each in rest if each not in index or each in open_), None)
            if after is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    members = set[int]()
                    while not members or node not in members:
                        members.add(stack.pop())
                    open_ -= members
                    if len(members) > 1:
                        yield members
            elif after in index:
                low[node] = min(low[node], index[after])
            else:
                low.setdefault(after, math.inf)
                work.append((after, iter(graph.get(after, {}))))
