"""Names into ids: whoever asks knows names, the protocol goes by ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final

from skyfarer.base.errors import PermanentError
from skyfarer.cli.query.client import Oap
from skyfarer.cli.query.drawing import plain

ENDPOINTS_ASKED: Final = 1000

SERVICES = """query services($layer: String) {
  listServices(layer: $layer) { id name group layers normal }
}"""
INSTANCES = """query instances($serviceId: ID!, $duration: Duration!) {
  listInstances(serviceId: $serviceId, duration: $duration) {
    id name language attributes { name value }
  }
}"""
ENDPOINTS = """query endpoints(
  $serviceId: ID!, $keyword: String, $limit: Int!, $duration: Duration
) {
  findEndpoint(serviceId: $serviceId, keyword: $keyword, limit: $limit, duration: $duration) {
    id name
  }
}"""


@dataclass(frozen=True)
class Service:
    id: str
    name: str
    normal: bool
    layers: tuple[str, ...]


def services(oap: Oap, layer: str | None = None) -> list[Service]:
    found = oap.ask(SERVICES, layer=layer)["listServices"]
    made = [
        Service(one["id"], one["name"], one["normal"] is not False, tuple(one["layers"]))
        for one in found
    ]
    return sorted(made, key=lambda service: service.name)


def service(oap: Oap, name: str) -> Service:
    """The real one of two of the name. PermanentError, with the nearest, if there is none."""
    known = services(oap)
    of_name = [one for one in known if one.name == name]
    if of_name:
        return max(of_name, key=lambda one: one.normal)
    raise _unknown("service", name, [one.name for one in known])


def instance(oap: Oap, of: Service, name: str, duration: dict[str, str]) -> str:
    """Its id."""
    found = oap.ask(INSTANCES, serviceId=of.id, duration=duration)["listInstances"]
    return _id("instance", name, found, f" of {plain(of.name)} in that time")


def endpoint(oap: Oap, of: Service, name: str) -> str:
    """Its id."""
    found = oap.ask(ENDPOINTS, serviceId=of.id, keyword=name, limit=ENDPOINTS_ASKED, duration=None)
    return _id("endpoint", name, found["findEndpoint"], f" of {plain(of.name)}")


def _id(what: str, name: str, found: Sequence[dict[str, Any]], where: str) -> str:
    ids = {one["name"]: str(one["id"]) for one in found}
    if name not in ids:
        raise _unknown(what, name, list(ids), where)
    return ids[name]


def _unknown(what: str, name: str, known: Sequence[str], where: str = "") -> PermanentError:
    close = get_close_matches(name, known, n=1)
    hint = f"; did you mean '{plain(close[0])}'?" if close else ""
    if not close and known:
        listed = ", ".join(plain(one) for one in sorted(known)[:8])
        hint = f"; there are {listed}" + (" and more" if len(known) > 8 else "")
    return PermanentError(f"there is no {what} '{name}'{where}{hint}")
