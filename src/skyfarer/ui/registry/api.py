"""What the page of the registry asks of the OAP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skyfarer.ui.api import OapClient
from skyfarer.ui.registry.model import Entries, Entry, Lookup


async def entries(client: OapClient, lookup: Lookup) -> Entries:
    if lookup.is_in_vain:
        return Entries((), False)
    told = await client.get("/status/registry", lookup.asked())
    return Entries(tuple(map(_entry, told["rows"])), told["more"])


def _entry(row: Mapping[str, Any]) -> Entry:
    return Entry(
        id=row["id"],
        name=row["name"],
        owner=_named(row.get("service")),
        facts=tuple(_facts(row)),
        registered_ms=row["registered"],
        heartbeat_ms=row["heartbeat"],
    )


def _facts(row: Mapping[str, Any]) -> list[str]:
    found = [str(row[key]) for key in ("type", "detectPoint") if row.get(key)]
    if row.get("address"):
        found.append(f"address {_named(row['address'])}")
    if row.get("mapping"):
        found.append(f"is {_named(row['mapping'])}")
    if row.get("uuid") and row["uuid"] != row["name"]:
        found.append(f"uuid {row['uuid']}")
    if row.get("properties") not in (None, "", "{}"):
        found.append(str(row["properties"]))
    return found


def _named(ref: Mapping[str, Any] | None) -> str:
    """With its id: it is the id that a v2 agent sends."""
    if ref is None:
        return ""
    return f"{ref['name']} #{ref['id']}" if ref["name"] else f"#{ref['id']}"
