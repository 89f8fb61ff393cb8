"""Prometheus text, as far as a program that wrote it itself must read it back."""

from __future__ import annotations

import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass

from skyfarer.base.errors import RetryableError

TIMEOUT_S = 10.0
ANSWER_BYTES_MAX = 16 << 20

_SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True)
class Sample:
    name: str
    labels: dict[str, str]
    value: float


def fetch(url: str, who: str) -> Samples:
    """Blocks. RetryableError, which says `who` is not there, when nobody answers with metrics."""
    # No proxy: it is a port of this machine or its network, whatever the environment says.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=TIMEOUT_S) as response:
            text = response.read(ANSWER_BYTES_MAX).decode("utf-8", "replace")
    except (OSError, urllib.error.URLError, ValueError) as error:
        raise RetryableError(f"no {who} shows its metrics at {url}: {error}") from error
    return Samples(text)


class Samples:
    """One scrape."""

    def __init__(self, text: str) -> None:
        self._all = list(_parsed(text))

    def total(self, name: str, **labels: str) -> float:
        """The sum of the series that have these labels, whatever others they have."""
        wanted = labels.items()
        return sum(
            one.value for one in self._all if one.name == name and wanted <= one.labels.items()
        )

    def values(self, label: str, *names: str) -> list[str]:
        """What a label is in any series of these metrics, in order of appearance."""
        found = (one.labels.get(label) for one in self._all if one.name in names)
        return list(dict.fromkeys(value for value in found if value is not None))


def _parsed(text: str) -> Iterator[Sample]:
    for name, labels, value in _SAMPLE.findall(text):
        try:
            number = float(value)
        except ValueError:
            continue
        yield Sample(name, dict(_LABEL.findall(labels)), number)
