"""Where the nodes of a map stand: callers left of whom they call.

A node's column is one more than that of its farthest caller; calls that lead back, as in a circle,
do not count. Within a column nodes stand near those that call them. The same map is always drawn
the same way: nothing jumps when it is refreshed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

Place = tuple[float, float]
Edge = tuple[str, str]
SWEEPS = 4


def placed(nodes: Sequence[str], edges: Collection[Edge]) -> dict[str, Place]:
    """Node → (column, height), heights centred around 0."""
    names = sorted(nodes)
    known = set(names)
    forward = _forward(names, [e for e in sorted(edges) if known.issuperset(e) and e[0] != e[1]])
    columns = _columns(names, forward)
    heights = {name: float(height) for rank in columns for height, name in enumerate(rank)}
    callers = _neighbours(forward, towards=1)
    for _ in range(SWEEPS):
        for rank in columns:
            rank.sort(key=lambda name: (_middle(callers.get(name), heights, name), name))
            heights |= {name: float(height) for height, name in enumerate(rank)}
    return {
        name: (float(column), height - (len(rank) - 1) / 2)
        for column, rank in enumerate(columns)
        for height, name in enumerate(rank)
    }


def _forward(names: Sequence[str], edges: Sequence[Edge]) -> list[Edge]:
    """Without those that close a circle, found by walking from callers that nobody calls."""
    targets = _neighbours(edges, towards=0)
    called = {target for _, target in edges}
    back, done, open_path = set[Edge](), set[str](), set[str]()
    for start in [*(n for n in names if n not in called), *names]:
        stack = [(start, iter(targets.get(start, ())))] if start not in done else []
        open_path.update(name for name, _ in stack)
        while stack:
            name, rest = stack[-1]
            target = next(rest, None)
            if target is None:
                stack.pop()
                open_path.discard(name)
                done.add(name)
            elif target in open_path:
                back.add((name, target))
            elif target not in done:
                stack.append((target, iter(targets.get(target, ()))))
                open_path.add(target)
    return [edge for edge in edges if edge not in back]


def _columns(names: Sequence[str], forward: Sequence[Edge]) -> list[list[str]]:
    rank = dict.fromkeys(names, 0)
    targets, waiting = _neighbours(forward, towards=0), dict.fromkeys(names, 0)
    for _, target in forward:
        waiting[target] += 1
    ready = [name for name in names if not waiting[name]]
    while ready:
        name = ready.pop()
        for target in targets.get(name, ()):
            rank[target] = max(rank[target], rank[name] + 1)
            waiting[target] -= 1
            if not waiting[target]:
                ready.append(target)
    columns: list[list[str]] = [[] for _ in range(max(rank.values(), default=-1) + 1)]
    for name in names:
        columns[rank[name]].append(name)
    return columns


def _neighbours(edges: Collection[Edge], towards: int) -> dict[str, list[str]]:
    """With `towards` 0 a caller → those it calls, with 1 a called one → its callers."""
    found: dict[str, list[str]] = {}
    for edge in edges:
        found.setdefault(edge[towards], []).append(edge[1 - towards])
    return found


def _middle(near: Sequence[str] | None, heights: Mapping[str, float], name: str) -> float:
    """Where those near it stand on average; where it stood, if there are none."""
    if not near:
        return heights[name]
    return sum(heights[one] for one in near) / len(near)
