"""All the real clients at work at once, for tests that look at each of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from e2e import environments
from e2e.reading import seen
from e2e.shops import IDS_WITHIN_S, Shop, node_shop, old_shops, otel, python_shop
from skyfarer.testing.programs import Oap, eventually
from skyfarer.testing.satellites import SatelliteProgram

VISITS = {"/catalogue": 7, "/checkout": 3, "/basket": 2}
VISIBLE_WITHIN_S = 240.0
REGISTERED_WITHIN_S = 240.0
"""The Node agent tells of itself 20 s after its start, and every 20 s."""


@dataclass(frozen=True)
class Crowd:
    """Name → what became of that client: its shops, or the contexts of its calls."""

    oap: Oap
    satellite: SatelliteProgram
    books_before: Mapping[str, Any]
    visits: Mapping[str, Future[Any]]

    def visited(self, name: str) -> Any:
        """Blocks until that client has done its part; raises what kept it from that."""
        try:
            return self.visits[name].result()
        except environments.MissingError as missing:
            pytest.skip(str(missing))

    def seen(self, service: str, endpoints: Mapping[str, int]) -> dict[str, Any]:
        """What the OAP knows of a service as soon as it knows of all these calls."""
        total = sum(endpoints.values())

        def visible() -> bool:
            return seen(self.oap, service).get("calls", 0) >= total

        eventually(visible, VISIBLE_WITHIN_S, f"{total} calls of {service} visible")
        return seen(self.oap, service)

    def await_registered(self, service: str, language: str) -> None:
        wanted = [{"name": f"{service}-1", "language": language}]
        eventually(
            lambda: bool(seen(self.oap, service)["instances"] == wanted),
            REGISTERED_WITHIN_S,
            f"{service} tells of its instance",
        )


class Clients:
    """Starts them; each is stopped with `stack`."""

    def __init__(
        self, directory: Path, oap: Oap, stack: ExitStack, otlp: Mapping[str, str]
    ) -> None:
        self._directory = directory
        self._oap = f"127.0.0.1:{oap.grpc_port}"
        self._rest = f"127.0.0.1:{oap.rest_port}"
        self._stack = stack
        self._otlp = otlp

    def jobs(self, satellite: SatelliteProgram) -> dict[str, Callable[[], Any]]:
        """Those first whose agents take their time."""
        relay, here = satellite.address, self._directory
        return {
            "node-shop": lambda: self._open(node_shop(here, "node-shop", self._oap)),
            "node-shop-relayed": lambda: self._open(node_shop(here, "node-shop-relayed", relay)),
            "old-shop": self._open_old,
            "python-shop": lambda: self._open(python_shop(here, "python-shop", self._oap)),
            "python-shop-relayed": lambda: self._open(
                python_shop(here, "python-shop-relayed", relay)
            ),
            "python-shop-http": lambda: self._open(
                python_shop(here, "python-shop-http", self._rest, "http")
            ),
            "otel-shop-grpc": lambda: self._trade("otel-shop-grpc", self._oap, "grpc"),
            "otel-shop-http": lambda: self._trade("otel-shop-http", self._rest, "http"),
            "otel-shop-grpc-relayed": lambda: self._trade(
                "otel-shop-grpc-relayed", self._otlp["grpc"], "grpc"
            ),
            "otel-shop-http-relayed": lambda: self._trade(
                "otel-shop-http-relayed", self._otlp["http"], "http"
            ),
        }

    def _open(self, shop: Shop) -> Shop:
        self._stack.callback(shop.stop)
        shop.await_ready()
        shop.sell(VISITS)
        return shop

    def _open_old(self) -> tuple[Shop, Shop]:
        """Sells once before its agent has ids for its pages, and once after that."""
        front, stock = old_shops(self._directory, "old-front", "old-stock", self._oap)
        for shop in (front, stock):
            self._stack.callback(shop.stop)
        for shop in (stock, front):
            shop.await_ready()
        front.sell(VISITS)
        for page in VISITS:
            front.await_said(f"register endpoint[{page}, ", IDS_WITHIN_S)
        front.await_said("register network address [127.0.0.1:", IDS_WITHIN_S)
        stock.await_said("register endpoint[/stock, ", IDS_WITHIN_S)
        front.sell(VISITS)
        return front, stock

    def _trade(self, service: str, backend: str, protocol: str) -> list[str]:
        """Orders in one process, their payments in another."""
        calls = otel(service, backend, protocol)
        otel(f"{service}-pay", backend, protocol, *calls)
        return [context.split("-")[1] for context in calls]
