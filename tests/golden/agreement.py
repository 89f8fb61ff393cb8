"""Where two analyses of the same segments differ, said so that it can be looked into."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from golden.seen import Of, Seen
from skyfarer.oap.core.entities import ENTITY_COLUMNS
from skyfarer.testing.plain_analysis import Row

_CALL = ("latency", "status", "http_code", "rpc_code", "type")
_GENERATED = ("latency", "status", "input_tokens", "output_tokens", "cost", "first_token")
_SENT = ("status", "operation", "transmission_latency")
ATTRIBUTES = {
    **dict.fromkeys(("Service", "ServiceInstance", "Endpoint"), (*_CALL, "tags")),
    **dict.fromkeys(("ServiceRelation", "ServiceInstanceRelation", "EndpointRelation"), _CALL),
    "DatabaseAccess": ("latency", "status"),
    "CacheAccess": ("latency", "status", "operation"),
    "MQAccess": _SENT,
    "MQEndpointAccess": _SENT,
    "GenAIProviderAccess": _GENERATED,
    "GenAIModelAccess": _GENERATED,
}
"""What the rows of each source say beside their entity."""


def disagreements(plain: Seen, other: Seen) -> Iterator[tuple[int, str]]:
    """(epoch minute, sentence) of each."""
    ours, theirs = Counter(map(_shown, plain.rows)), Counter(map(_shown, other.rows))
    for minute, row in ours - theirs:
        yield minute, f"plain alone has {row}"
    for minute, row in theirs - ours:
        yield minute, f"the other alone has {row}"
    for of in sorted(plain.columns.keys() | other.columns.keys(), key=_order):
        one, two = plain.columns.get(of, {}), other.columns.get(of, {})
        for name in sorted(one.keys() | two.keys()):
            if one.get(name) != two.get(name):
                seen = f"plain {one.get(name)}, the other {two.get(name)}"
                yield of.minute, f"{of.source} '{of.entity}': {name}: {seen}"


def _order(of: Of) -> tuple[int, str, str]:
    return of.minute, of.source, of.entity


def _shown(row: Row) -> tuple[int, str]:
    """Metas have nothing but their entity."""
    names = (*ENTITY_COLUMNS, *ATTRIBUTES.get(row["source"], ()))
    values = ", ".join(f"{n}={row[n]!r}" for n in names if row[n] not in ("", 0, None, []))
    return row["minute"], f"{row['source']}({values})"
