"""What a queue is, without a disk: a list of records, and for each consumer a list of places."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from skyfarer.queue.run import Run


class Place(NamedTuple):
    """A commit: what is below was delivered or dropped."""

    committed: int = 0
    delivered: int = 0
    dropped: tuple[tuple[str, int], ...] = ()

    def after(self, run: Run) -> Place:
        dropped = Counter(dict(self.dropped)) + Counter(run.dropped)
        delivered = self.delivered + run.count - len(run.damaged)
        return Place(run.end, delivered, tuple(sorted(dropped.items())))


@dataclass
class Model:
    """Everything ever accepted, which of it rotted, and how far each consumer came.

    Of the one append and the commits that died, nobody knows what was done until the next start.
    """

    records: list[tuple[int, bytes]] = field(default_factory=list)
    rotten_entries: set[int] = field(default_factory=set)
    rotten_payloads: set[int] = field(default_factory=set)
    appending: list[tuple[int, bytes]] = field(default_factory=list)
    places: dict[str, list[Place]] = field(default_factory=lambda: defaultdict(lambda: [Place()]))
    rotten_slots: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    committing: dict[str, Run] = field(default_factory=dict)
    fallen_from: dict[str, list[Place]] = field(default_factory=dict)
    reached: Counter[str] = field(default_factory=Counter)
    suspect: int = 0

    def appended(self, writing: int) -> None:
        kept = writing - len(self.records)
        assert 0 <= kept <= len(self.appending), "acknowledged records gone, or others invented"
        self.records += self.appending[:kept]
        self.made_anew(writing, writing + 10**6)
        self.appending = []

    def made_anew(self, first: int, end: int) -> None:
        for rotten in (self.rotten_entries, self.rotten_payloads):
            rotten -= {n for n in rotten if first <= n < end}

    def rotten(self) -> set[int]:
        """Behind an entry and its own payload, both rotten, the checksum of the next has nothing
        to begin with."""
        unproven: set[int] = set()
        for n in sorted(self.rotten_entries):
            if n in self.rotten_payloads or n in unproven:
                unproven.add(n + 1)
        return self.rotten_entries | self.rotten_payloads | unproven

    def place(self, name: str) -> Place:
        return self.places[name][-1]

    def settle(self, name: str, stated: Place, fresh: Place | None = None) -> None:
        """Where a consumer says it is, `fresh` being where it begins when it knows nothing more. A
        running one knows its last commit by heart, and gives no `fresh`."""
        run = self.committing.pop(name, None)
        for history in self._possible(name, run, fresh):
            if history[-1] == stated._replace(delivered=history[-1].delivered):
                break
        else:
            raise AssertionError(f"{name} is at {stated}, and was at {self.places[name][-3:]}")
        if len(history) > len(self.places[name]):
            self.rotten_slots[name].discard(slot(history))
            self.fallen_from.pop(name, None)
        elif history is not self.places[name]:
            self.fallen_from[name] = self.places[name]
        self.places[name] = history
        self.reached[name] = max(self.reached[name], stated.committed)

    def _possible(self, name: str, run: Run | None, fresh: Place | None) -> Iterator[list[Place]]:
        """The commit that died wrote over the one before the last. When that or rot has taken it,
        and rot has taken the last, nothing is left. Or else what it did write was the part that was
        rotten, and the commit there is whole again."""
        history, rotten = self.places[name], self.rotten_slots[name]
        if run is not None:
            yield [*history, history[-1].after(run)]
            once = self.fallen_from.get(name, [])[: len(history) + 1]
            if fresh is not None and len(once) > len(history):
                yield [*history, once[-1]]
        if fresh is None or slot(history) not in rotten:
            yield history
            return
        before = history[:-1]
        if before and slot(before) not in rotten:
            yield before
        if not before or slot(before) in rotten or run is not None:
            yield [fresh]


def slot(history: list[Place]) -> int:
    """Commits take turns between two."""
    return (len(history) - 1) % 2
