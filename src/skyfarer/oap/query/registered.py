"""The registry of the v2 protocol, for people: what was given which id.

    GET /status/registry?kind=&keyword=&id=&page=&size=
    {"kind", "page", "more", "rows": [{"id", "name", …}]}

`kind` is service (unless it says otherwise), instance, endpoint or address. Rows are those whose
name contains the keyword, by id, or the one with that `id`. Ids of others have the name beside
them: that of a service for an instance or endpoint, of what an address turned out to be.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from skyfarer.oap.core.inventory import Inventory, InventoryReader, InventoryScope
from skyfarer.oap.query import limits
from skyfarer.oap.query.errors import QueryError
from skyfarer.oap.query.traces.span import cut

KINDS: Final = {
    "service": InventoryScope.SERVICE,
    "instance": InventoryScope.SERVICE_INSTANCE,
    "endpoint": InventoryScope.ENDPOINT,
    "address": InventoryScope.NETWORK_ADDRESS,
}
NODE_TYPES: Final = ("Normal", "Database", "RPCFramework", "Http", "MQ", "Cache", "Browser")
DETECT_POINTS: Final = ("CLIENT", "SERVER", "PROXY")
ID_MAX: Final = 2**31 - 1

View = dict[str, Any]


class Registered:
    """Any thread; blocks on storage."""

    def __init__(self, inventories: InventoryReader) -> None:
        self._inventories = inventories

    def told(self, asked: Mapping[str, str]) -> View:
        """QueryError for what cannot be asked."""
        kind = asked.get("kind", "") or "service"
        if kind not in KINDS:
            raise QueryError(f"kind must be one of {', '.join(KINDS)}, not {kind[:32]!r}")
        page = _number(asked, "page", 1, limits.REACH_MAX)
        size = _number(asked, "size", limits.REGISTRY_PAGE, limits.PAGE_MAX)
        found = self._found(KINDS[kind], asked, page, size)
        rows = self._views(found[:size])
        return {"kind": kind, "page": page, "more": len(found) > size, "rows": rows}

    def _found(
        self, scope: InventoryScope, asked: Mapping[str, str], page: int, size: int
    ) -> Sequence[Inventory]:
        """One more than the page has, where there is one."""
        if asked.get("id"):
            number = _number(asked, "id", 0, ID_MAX)
            return list(self._inventories.inventories_by_id(scope, [number]).values())
        keyword = asked.get("keyword", "")
        if len(keyword) > limits.NAME_CHARS_MAX:
            raise QueryError(f"a keyword has at most {limits.NAME_CHARS_MAX} characters")
        if page * size > limits.REACH_MAX:
            raise QueryError(f"pages reach the first {limits.REACH_MAX}: ask for a keyword")
        return self._inventories.inventories_found(scope, keyword, (page - 1) * size, size + 1)

    def _views(self, rows: Sequence[Inventory]) -> list[View]:
        services = self._names(
            InventoryScope.SERVICE, [i for row in rows for i in (row.service_id, _mapped(row))]
        )
        addresses = self._names(
            InventoryScope.NETWORK_ADDRESS, [row.address_id for row in rows if row.is_address]
        )
        return [_view(row, services, addresses) for row in rows]

    def _names(self, scope: InventoryScope, ids: Iterable[int]) -> dict[int, str]:
        wanted = sorted({one for one in ids if one > 0})
        found = self._inventories.inventories_by_id(scope, wanted) if wanted else {}
        return {number: _cut(one.name) for number, one in found.items()}


def _view(row: Inventory, services: Mapping[int, str], addresses: Mapping[int, str]) -> View:
    view: View = {
        "id": row.sequence,
        "name": _cut(row.name),
        "registered": row.register_time,
        "heartbeat": row.heartbeat_time,
    }
    if row.scope in (InventoryScope.SERVICE, InventoryScope.NETWORK_ADDRESS):
        view["type"] = _name(NODE_TYPES, row.node_type)
    if row.scope in (InventoryScope.SERVICE_INSTANCE, InventoryScope.ENDPOINT):
        view["service"] = _ref(row.service_id, services)
    if row.scope is InventoryScope.SERVICE:
        view["mapping"] = _ref(_mapped(row), services)
    if row.scope is InventoryScope.SERVICE_INSTANCE:
        view["uuid"] = _cut(row.uuid)
    if row.scope is InventoryScope.ENDPOINT:
        view["detectPoint"] = _name(DETECT_POINTS, row.detect_point)
    if row.scope in (InventoryScope.SERVICE, InventoryScope.SERVICE_INSTANCE):
        view["address"] = _ref(row.address_id, addresses) if row.is_address else None
        view["properties"] = cut(row.properties, limits.PROPERTIES_CHARS_MAX)
    return view


def _mapped(row: Inventory) -> int:
    return row.mapping_service_id


def _ref(number: int, names: Mapping[int, str]) -> View | None:
    """None for no id; without a name where nobody has that id."""
    return {"id": number, "name": names.get(number)} if number else None


def _name(names: Sequence[str], number: int) -> str:
    return names[number] if 0 <= number < len(names) else str(number)


def _cut(name: str) -> str:
    return cut(name, limits.NAME_CHARS_MAX)


def _number(asked: Mapping[str, str], key: str, usual: int, most: int) -> int:
    text = asked.get(key, "")
    if not text:
        return usual
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(most))):
        raise QueryError(f"{key} must be a number up to {most}, not {text[:32]!r}")
    number = int(text)
    if not 1 <= number <= most:
        raise QueryError(f"{key} must be from 1 to {most}, not {number}")
    return number
