"""service-apdex-threshold.yml: how fast an answer satisfies, by service, in milliseconds.

    default: 500
    checkout: 1000

What the function `apdex` of the metrics language calls T.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from skyfarer.base.config import read_yaml
from skyfarer.base.errors import ConfigError

SERVICES_MAX: Final = 1_000
_WHOLE: Final = re.compile("[0-9]{1,9}")


def apdex_thresholds_ms(file: Path | None) -> dict[str, int]:
    """By name, or `default`; none without a file, ConfigError for a bad one. Blocks."""
    if file is None:
        return {}
    document = read_yaml(file, {})
    found: dict[str, int] = {}
    for name, value in document.values().items():
        if not isinstance(value, str) or not _WHOLE.fullmatch(value) or not int(value):
            where = document.where(name)
            raise ConfigError(f"{where} must be milliseconds, a whole number, not {value!r}")
        found[name] = int(value)
    if len(found) > SERVICES_MAX:
        raise ConfigError(f"{document.where()} has {len(found)} entries, more than {SERVICES_MAX}")
    return found
