"""The keys of `prometheus-fetcher`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from skyfarer.base.units import KIB, MIB
from skyfarer.satellite.fetchers.prometheus.target import Target, target
from skyfarer.satellite.notation import seconds
from skyfarer.wire.tls import ClientTls, ClientTlsSettings

BODY_BYTES_MAX = 64 * MIB
TARGETS_MAX = 1000
SAMPLES_MAX = 1_000_000


@dataclass(frozen=True)
class RelabelConfig:
    """What becomes of samples by the value of a label; `__name__` is the metric's name.

    `keep` and `drop` decide on the whole sample, `replace` sets `target` to `replacement`, in which
    \\1 stands for the first group, and takes it away when that is empty. A regular expression must
    match the whole value; a label that is not there has an empty one.
    """

    source: str
    regex: str = ".*"
    action: Literal["keep", "drop", "replace"] = "replace"
    target: str = ""
    replacement: str = r"\g<0>"

    def __post_init__(self) -> None:
        try:
            re.compile(self.regex)
        except re.error as error:
            raise ValueError(f"regex is no regular expression: {error}") from error
        if (self.action == "replace") != bool(self.target):
            raise ValueError("target must be given for replace, and for nothing else")


@dataclass(frozen=True)
class PrometheusFetcherConfig:
    targets: tuple[str, ...]  # host:port, or an address such as http://host:port/metrics
    service: str  # whose meters these are
    service_instance: str = ""  # by default the target's host:port
    job: str = ""  # the label of that name; by default the service
    labels: dict[str, str] = field(default_factory=dict)  # for every sample
    relabel: tuple[RelabelConfig, ...] = ()
    interval: str = "15s"
    timeout: str = "10s"  # for the whole of one scrape
    authorization: str = ""  # the header of that name, such as: Bearer …
    bearer_token_file: str = ""  # read again for each scrape, instead of authorization
    enable_tls: bool = False  # for https targets, and for those given without a scheme
    ca_pem_path: Path | None = None  # by default the machine's own authorities
    client_pem_path: Path | None = None  # with client_key_path: for targets that ask for one
    client_key_path: Path | None = None
    insecure_skip_verify: bool = False
    max_body_bytes: int = 8 * MIB  # of an answer, also after inflating
    max_samples: int = 50_000  # of an answer

    def __post_init__(self) -> None:
        if not self.service or not 1 <= len(self.targets) <= TARGETS_MAX:
            raise ValueError(f"service must not be empty, targets be from 1 to {TARGETS_MAX}")
        if len({one.address for one in self.addresses()}) < len(self.targets):
            raise ValueError("targets names one address twice")
        if not 0 < seconds(self.timeout) <= seconds(self.interval):
            raise ValueError("timeout must be above 0 and at most interval")
        if not KIB <= self.max_body_bytes <= BODY_BYTES_MAX:
            raise ValueError(f"max_body_bytes must be from {KIB} to {BODY_BYTES_MAX}")
        if not 1 <= self.max_samples <= SAMPLES_MAX:
            raise ValueError(f"max_samples must be from 1 to {SAMPLES_MAX}")

    def tls(self) -> ClientTls | None:
        if not self.enable_tls:
            return None
        files = (self.ca_pem_path, self.client_pem_path, self.client_key_path)
        return ClientTls(ClientTlsSettings(*files, verify=not self.insecure_skip_verify))

    def addresses(self) -> list[Target]:
        return [target(text, self.enable_tls) for text in self.targets]
