"""Where a target is."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_ADDRESS: Final = re.compile(
    r"(?:(https?)://)?(\[[0-9a-fA-F:.]+\]|[^\s:/?#@\[\]]+)(?::([0-9]{1,5}))?(/[!-~]*)?\Z"
)
_PORTS: Final = {"http": 80, "https": 443}
METRICS: Final = "/metrics"


@dataclass(frozen=True, slots=True)
class Target:
    host: str
    port: int
    path: str
    secure: bool

    @property
    def instance(self) -> str:
        """What the label of that name says."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def address(self) -> str:
        return f"{'https' if self.secure else 'http'}://{self.instance}{self.path}"


def target(text: str, secure: bool) -> Target:
    """ValueError for what is no address, and for https where TLS is not enabled."""
    match = _ADDRESS.match(text.strip())
    if match is None or int(match[3] or 0) > 65535:
        raise ValueError(f"'{text}' is no target such as 127.0.0.1:9100")
    scheme = match[1] or ("https" if secure else "http")
    if scheme == "https" and not secure:
        raise ValueError(f"'{text}' needs enable_tls: true")
    port = int(match[3]) if match[3] else _PORTS[scheme]
    return Target(match[2].strip("[]"), port, match[4] or METRICS, scheme == "https")
