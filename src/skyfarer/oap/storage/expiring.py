"""Leases, and the names of tables that expire: what holds for every storage (`oap.core.expiry`)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from skyfarer.oap.core.expiry import LEASE_S_MAX, DayTable, Kept, Lease, LeaseLostError

DAY_TABLE: Final = re.compile("([a-z][a-z0-9_]*)_([0-9]{8})")
OUT_OF_SIGHT: Final = "dropped_"
"""Before the name of what is to go, which is renamed first: that takes no longer for a table that
has more in it, and its space is given back when nobody sees it any more (ADR 022)."""


def day_table(name: str, kept_as: Callable[[str], Kept | None]) -> DayTable | None:
    """None for what is no table of a day, or of no model that `kept_as` knows."""
    found = DAY_TABLE.fullmatch(name)
    kept = kept_as(found[1]) if found else None
    return DayTable(found[1], int(found[2]), kept) if found and kept else None


def is_out_of_sight(name: str) -> bool:
    rest = name.removeprefix(OUT_OF_SIGHT)
    return rest != name and DAY_TABLE.fullmatch(rest) is not None


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
