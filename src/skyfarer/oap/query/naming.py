"""Names out of ids; what is no id is its own name."""

from __future__ import annotations

from skyfarer.oap.core import ids


def service_name(service_id: str) -> str:
    try:
        return ids.decode_service_id(service_id)[0]
    except ValueError:
        return service_id


def part_name(part_id: str) -> str:
    """The name in an instance's or endpoint's id."""
    try:
        return ids.decode_part_id(part_id)[1]
    except ValueError:
        return part_id


def service_of(part_id: str) -> str:
    """The id of the service that an instance or endpoint belongs to."""
    return part_id.partition("_")[0]


def is_real(service_id: str) -> bool:
    """False for what agents only conjecture."""
    return service_id.endswith(".1")
