"""The OAP's public API, as far as the page needs it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

from skyfarer.ui.kinds import kind_of
from skyfarer.ui.model import (
    Ledger,
    Overview,
    Series,
    ServerTime,
    Service,
    Vitals,
)
from skyfarer.ui.window import Buckets, Window

TIMEOUT_S = 5.0
SEARCH_TIMEOUT_S = 45.0
"""Longer than the OAP looks for anything: when it gives up it says why, and what to ask instead."""
SERVICES_SHOWN_MAX = 40
LATEST_POINTS = 2

_JSON = {"accept": "application/json"}
_TIME = "query time { getTimeInfo { timezone currentTimestamp } }"
_SERVICES = "query services { listServices { id name normal layers } }"


class OapAwayError(Exception):
    """Nobody answers at the address; the text says why in a few words."""


class OapRefusedError(Exception):
    """The OAP answered, and said no; the text is its own."""


@dataclass(frozen=True)
class Status:
    """The server's time and books: what stands on top of every page."""

    time: ServerTime
    ledger: Ledger | None


@dataclass(frozen=True)
class Wanted:
    """What a page wants to see: services whose name contains `filter`, and one in full, with one of
    its instances."""

    filter: str = ""
    selected: str = ""
    instance: str = ""
    window: Window = field(default_factory=Window)


class OapClient:
    """Call from one event loop. Connects when first used; `stop` is safe at any time. What takes
    no search is waited for `timeout_s`, so that a page soon knows that nobody is there."""

    def __init__(
        self, url: str, timeout_s: float = TIMEOUT_S, search_timeout_s: float = SEARCH_TIMEOUT_S
    ) -> None:
        self.url = url.rstrip("/")
        self._timeout_s = timeout_s
        self._search_timeout_s = search_timeout_s
        self._http: httpx.AsyncClient | None = None

    async def stop(self) -> None:
        if self._http is not None:
            await self._http.aclose()
            self._http = None

    async def status(self) -> Status:
        """OapAwayError or OapRefusedError when it cannot be had, as for everything here."""
        (told, ledger) = await asyncio.gather(
            self._told(_TIME, {}, self._timeout_s), self._ledger()
        )
        info = told["getTimeInfo"]
        return Status(ServerTime.of(info["currentTimestamp"], info["timezone"]), ledger)

    async def services(self) -> list[Service]:
        """All there are, by name, each name once: what is known for real hides what agents only
        conjecture under its name."""
        found = await self.graphql(_SERVICES, {})
        named = {one.name: one for one in sorted(map(_service, found["listServices"]), key=_real)}
        return sorted(named.values(), key=lambda service: service.name)

    async def overview(self, time: ServerTime, wanted: Wanted) -> Overview:
        services = await self.services()
        matching = [s for s in services if wanted.filter.lower() in s.name.lower()]
        matching.sort(key=lambda service: not service.normal)
        shown = matching[:SERVICES_SHOWN_MAX]
        selected = next((s for s in services if s.name == wanted.selected), None)
        if not wanted.selected and shown:
            selected = shown[0]
        buckets = wanted.window.buckets(time)
        vitals = await self._vitals(buckets, shown, selected)
        of_time = (buckets.times, buckets.step)
        return Overview(time, shown, len(matching), vitals, selected, *of_time)

    async def _vitals(
        self, buckets: Buckets, shown: Sequence[Service], selected: Service | None
    ) -> dict[str, Vitals]:
        asked = list(shown) + [s for s in (selected,) if s is not None and s not in shown]
        if not asked:
            return {}
        variables: dict[str, Any] = {"window": buckets.duration()}
        for number, service in enumerate(asked):
            variables[f"e{number}"] = {"serviceName": service.name, "normal": service.normal}
            variables[f"d{number}"] = (
                buckets.duration() if service == selected else buckets.duration(LATEST_POINTS)
            )
        data = await self.graphql(_metrics_document(asked), variables)
        return {
            service.name: _vitals(data, number, buckets.growing)
            for number, service in enumerate(asked)
        }

    async def _ledger(self) -> Ledger | None:
        """None where there is none to read: it is one line of the page, not a reason to fail."""
        response = await self._send("GET", "/status/ledger", self._timeout_s)
        if response.status_code != httpx.codes.OK:
            return None
        books = _object(response)
        return Ledger(
            books["accepted"],
            books["delivered"],
            books["queued"],
            sum(books["dropped"].values()),
            books["balanced"],
        )

    async def graphql(self, query: str, variables: Mapping[str, Any]) -> dict[str, Any]:
        return await self._told(query, variables, self._search_timeout_s)

    async def _told(
        self, query: str, variables: Mapping[str, Any], timeout_s: float
    ) -> dict[str, Any]:
        body = {"query": query, "variables": variables}
        answer = _object(await self._send("POST", "/graphql", timeout_s, body))
        if answer.get("errors"):
            raise OapRefusedError("; ".join(str(e.get("message")) for e in answer["errors"][:3]))
        data = answer["data"]
        assert isinstance(data, dict)
        return data

    async def get(self, path: str, asked: Mapping[str, str] | None = None) -> dict[str, Any]:
        """What one of the paths beside GraphQL answers."""
        response = await self._send("GET", path, self._search_timeout_s, asked=asked)
        answer = _object(response)
        if response.status_code != httpx.codes.OK:
            said = [str(error.get("message")) for error in answer.get("errors", [])[:3]]
            raise OapRefusedError("; ".join(said) or f"HTTP {response.status_code} of {path}")
        return answer

    async def _send(
        self,
        method: str,
        path: str,
        timeout_s: float,
        body: object = None,
        asked: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        if self._http is None:
            self._http = httpx.AsyncClient(base_url=self.url, headers=_JSON, trust_env=False)
        timeout = httpx.Timeout(timeout_s, connect=self._timeout_s)
        try:
            return await self._http.request(method, path, json=body, params=asked, timeout=timeout)
        except httpx.ConnectTimeout:
            raise OapAwayError(f"no answer within {self._timeout_s:g} s") from None
        except httpx.TimeoutException:
            raise OapAwayError(f"no answer within {timeout_s:g} s") from None
        except httpx.HTTPError as error:
            raise OapAwayError(str(error) or type(error).__name__) from error


def _object(response: httpx.Response) -> dict[str, Any]:
    try:
        answer = response.json()
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise OapRefusedError(f"HTTP {response.status_code} without a JSON answer")
    return answer


def _real(service: Service) -> bool:
    return service.normal


def _service(entry: Mapping[str, Any]) -> Service:
    return Service(entry["id"], entry["name"], entry["normal"] is not False, tuple(entry["layers"]))


def _metrics_document(services: Sequence[Service]) -> str:
    """Three aliased expressions per service: its calls over the window, its averages over $dN."""
    fields, variables = [], "$window: Duration!"
    for number, kind in enumerate(map(kind_of, services)):
        variables += f", $e{number}: Entity!, $d{number}: Duration!"
        fields += [
            _expression(f"cpm{number}", kind.cpm, number, "window"),
            _expression(f"resp_time{number}", kind.resp_time, number, f"d{number}"),
            _expression(f"sla{number}", kind.sla, number, f"d{number}"),
        ]
    return f"query vitals({variables}) {{ {' '.join(fields)} }}"


def _expression(alias: str, metric: str, number: int, span: str) -> str:
    arguments = f'expression: "{metric}", entity: $e{number}, duration: ${span}'
    return f"{alias}: execExpression({arguments}) {{ results {{ values {{ value }} }} }}"


def _vitals(data: Mapping[str, Any], number: int, growing: bool) -> Vitals:
    metrics = ("cpm", "resp_time", "sla")
    return Vitals(*(_series(data[f"{name}{number}"], growing) for name in metrics))


def _series(result: Mapping[str, Any], growing: bool) -> Series:
    values = [v["value"] for series in result["results"][:1] for v in series["values"]]
    return Series(tuple(None if value is None else int(value) for value in values), growing)
