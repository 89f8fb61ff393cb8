"""trace-sampling-policy-settings.yml: which segments are stored, as in the original.

    default:
      rate: 10000               of 10,000 traces
      duration: -1              milliseconds; a segment that takes longer is stored. -1: none is
    services:
      - name: checkout          what is left out is the default's
        rate: 1000
        duration: 30000

What is left out of storage is measured all the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from skyfarer.base.config import bind, read_yaml
from skyfarer.base.errors import ConfigError
from skyfarer.oap.core.sampling import NEVER_MS, RATE_MAX, Policy, Sampling

STOCK: Final = Path("trace-sampling-policy-settings.yml")
SERVICES_MAX: Final = 1_000


def _check_rate(rate: int | None) -> None:
    if rate is not None and not 0 <= rate <= RATE_MAX:
        raise ValueError(f"rate must be between 0 and {RATE_MAX}, of so many traces, not {rate}")


def _check_duration(duration: int | None) -> None:
    if duration is not None and duration < NEVER_MS:
        raise ValueError(f"duration must be milliseconds, or {NEVER_MS} for never, not {duration}")


@dataclass(frozen=True)
class Everybody:
    rate: int | None = None
    duration: int | None = None

    def __post_init__(self) -> None:
        _check_rate(self.rate)
        _check_duration(self.duration)

    def policy(self) -> Policy:
        return Policy(self.rate, self.duration)


@dataclass(frozen=True)
class ServicePolicy(Everybody):
    name: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.name:
            raise ValueError("name must be that of a service")


@dataclass(frozen=True)
class Policies:
    default: Everybody = Everybody()
    services: tuple[ServicePolicy, ...] = ()


def sampling_policies(file: Path | None, otherwise: Policy, errors: bool) -> Sampling:
    """`otherwise` is the default where the file has none; ConfigError for a bad file. Blocks.

    A stock application.yml names a file that need not be there.
    """
    if file is None or (file == STOCK and not file.exists()):
        return Sampling(otherwise, errors=errors)
    document = read_yaml(file, {})
    written = bind(Policies, document.values(), document.where())
    if len(written.services) > SERVICES_MAX:
        raise ConfigError(
            f"{document.where()} has {len(written.services)} services, more than {SERVICES_MAX}"
        )
    whole = Policy(
        otherwise.rate if written.default.rate is None else written.default.rate,
        otherwise.duration_ms if written.default.duration is None else written.default.duration,
    )
    return Sampling(whole, {one.name: one.policy() for one in written.services}, errors)
