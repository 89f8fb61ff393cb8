"""Leases, and the names of tables that expire: what holds for every storage (`oap.core.expiry`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from skyfarer.base.errors import PermanentError
from skyfarer.oap.core.expiry import LEASE_S_MAX, DayTable, Lease, LeaseLostError
from skyfarer.oap.core.streams.catalog import begins, kept

DAY_TABLE: Final = re.compile("([a-z][a-z0-9_]*)_([0-9]{8})")
OUT_OF_SIGHT: Final = "dropped_"
"""Before the name of what is to go, which is renamed first: that takes no longer for a table that
has more in it, and its space is given back when nobody sees it any more (ADR 022)."""
First: TypeAlias = tuple[str, ...]
"""The first columns of a table."""


def is_ours(name: str, first: First, told: Callable[[str], First] = begins) -> bool:
    """Whether it is a table of a day that begins as those of its model do, which is `told`."""
    found = DAY_TABLE.fullmatch(name)
    return found is not None and first == told(found[1]) != ()


def day_table(name: str, first: First) -> DayTable | None:
    """None for what is no table of a day, or not ours."""
    found, ours = DAY_TABLE.fullmatch(name), is_ours(name, first)
    how = kept(found[1]) if found and ours else None
    return DayTable(found[1], int(found[2]), how) if found and how else None


def name_of(table: DayTable, there: Mapping[str, First]) -> str:
    """Whether it is `there` or not; PermanentError for one that is not ours to drop."""
    name = f"{table.model}_{table.day:08d}"
    if day_table(name, there.get(name, begins(table.model))) != table:
        raise PermanentError(f"{name} is no table of a day that may be dropped")
    return name


def is_out_of_sight(name: str, first: First, told: Callable[[str], First] = begins) -> bool:
    rest = name.removeprefix(OUT_OF_SIGHT)
    return rest != name and is_ours(rest, first, told)


def lasts(lease: Lease, now_ms: int) -> bool:
    return now_ms < lease.expires_ms <= now_ms + int(LEASE_S_MAX * 1000)


def check(lease: Lease, last: Lease | None, now_ms: int) -> None:
    """LeaseLostError unless it is the last one that was given, and lasts."""
    if last is None or (last.epoch, last.holder) != (lease.epoch, lease.holder):
        newest = "nobody's" if last is None else f"{last.holder}'s, at epoch {last.epoch}"
        raise LeaseLostError(
            f"the lease {lease.name} of epoch {lease.epoch} is {newest}: nothing is dropped"
        )
    if last.expires_ms <= now_ms:
        raise LeaseLostError(
            f"the lease {lease.name} of epoch {lease.epoch} has expired"
            f" {now_ms - last.expires_ms} ms ago: nothing is dropped"
        )
