"""gateways.yml: the gateways that no agent watches, written as the original's file is.

    gateways:
      - name: proxy0
        instances:
          - host: 10.0.0.7
            port: 9099          80 when it is left out

A call from such an address came through a gateway, and the address stands for nobody's service.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from skyfarer.base.config import bind, read_yaml

PORT_DEFAULT: Final = 80


@dataclass(frozen=True)
class GatewayInstance:
    host: str
    port: int = PORT_DEFAULT

    @property
    def address(self) -> str:
        """A port of 0 or less is the default one, as in the original."""
        return f"{self.host}:{self.port if self.port > 0 else PORT_DEFAULT}"


@dataclass(frozen=True)
class Gateway:
    name: str
    instances: tuple[GatewayInstance, ...] = ()


@dataclass(frozen=True)
class Gateways:
    gateways: tuple[Gateway, ...] = ()


def gateway_addresses(file: Path | None) -> frozenset[str]:
    """`host:port` of every instance; none without a file, ConfigError for a bad one. Blocks."""
    if file is None:
        return frozenset()
    document = read_yaml(file, {})
    written = bind(Gateways, document.values(), document.where())
    return frozenset(
        instance.address for gateway in written.gateways for instance in gateway.instances
    )
