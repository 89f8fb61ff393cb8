"""A log line as fields: a JSON object, or what the named groups of a pattern match."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

from skyfarer.base.errors import ConfigError
from skyfarer.base.units import KIB
from skyfarer.satellite.contracts import Unfit
from skyfarer.satellite.processors.patterns import compile_pattern

LINE_CHARACTERS_MAX: Final = 256 * KIB
FIELDS_MAX: Final = 100
DEPTH_MAX: Final = 5
Format = Literal["json", "regex"]


class LineReader:
    """Reads texts of one format; ConfigError for a pattern that cannot be used."""

    def __init__(self, filter_name: str, form: Format, pattern: str) -> None:
        if (form == "regex") != bool(pattern):
            raise ConfigError(f"filter '{filter_name}': pattern goes with format regex")
        self._pattern = compile_pattern(pattern) if pattern else None
        if self._pattern is not None and not self._pattern.groupindex:
            raise ConfigError(
                f"filter '{filter_name}': pattern needs groups, as in (?P<level>\\w+)"
            )

    def read(self, text: str) -> dict[str, str]:
        """Keys of objects within objects are joined by dots; lists stay JSON. Unfit when the text
        is not of the format, or too long to look."""
        if len(text) > LINE_CHARACTERS_MAX:
            raise Unfit("too_long", f"a line of {len(text)} characters is not read")
        if self._pattern is None:
            return _from_json(text)
        match = self._pattern.search(text)
        if match is None:
            raise Unfit("unparsable", "the pattern does not match the line")
        return {key: value for key, value in match.groupdict().items() if value is not None}


def _from_json(text: str) -> dict[str, str]:
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Unfit("unparsable", f"the line is no JSON: {error}") from error
    if not isinstance(parsed, dict):
        raise Unfit("unparsable", "the line is JSON, but no object")
    fields: dict[str, str] = {}
    for key, value in _flat(parsed, "", 1):
        if len(fields) >= FIELDS_MAX:
            break
        fields[key] = value
    return fields


def _flat(values: Mapping[str, Any], prefix: str, depth: int) -> Iterator[tuple[str, str]]:
    for key, value in values.items():
        name = prefix + key
        if isinstance(value, dict) and depth < DEPTH_MAX:
            yield from _flat(value, f"{name}.", depth + 1)
        elif value is not None:
            yield name, value if isinstance(value, str) else json.dumps(value)
