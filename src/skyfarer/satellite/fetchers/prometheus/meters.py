"""Samples as serialised `skywalking.v3.MeterDataCollection`.

    MeterDataCollection { meterData 1 { singleValue 1 | histogram 2, service 3, serviceInstance 4,
                                        timestamp 5 } }
    MeterSingleValue { name 1, labels 2 { name 1, value 2 }, value 3 }
    MeterHistogram   { name 1, labels 2, values 3 { bucket 1, count 2, isNegativeInfinity 3 } }

Service, instance and time stand in the first message of a collection and hold for the others. A
bucket is told by its lower bound and counts what is in it alone, where Prometheus tells the upper
bound and counts everything below it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

from skyfarer.base.units import KIB
from skyfarer.satellite.fetchers.prometheus.exposition import Sample, Type
from skyfarer.wire.protobuf import delimited, double, number, text

COLLECTION_BYTES_MAX: Final = 512 * KIB
LABELS_MAX: Final = 2048
NAMES_MAX: Final = 512
_LE: Final = b"le"
_BUCKET: Final = b"_bucket"

_Series = tuple[bytes, tuple[tuple[bytes, bytes], ...]]


class Meters:
    """Gathers the samples of one scrape. `skipped` are those without a finite value."""

    def __init__(self, service: str, service_instance: str, now_ms: int) -> None:
        self.kept = 0
        self.skipped = 0
        self._identity = text(3, service) + text(4, service_instance)
        self._now_ms = now_ms
        self._histograms: set[bytes] = set()
        self._buckets: dict[tuple[_Series, int], dict[float, float]] = {}
        self._metrics: dict[int, list[bytes]] = {}

    def declare(self, declared: Type) -> None:
        if declared.kind == b"histogram":
            self._histograms.add(declared.family + _BUCKET)

    def add(self, sample: Sample, declared_name: bytes | None = None) -> None:
        """`declared_name` is the one the target gave it, if a rule changed it since."""
        at_ms = self._now_ms if sample.timestamp_ms is None else max(0, sample.timestamp_ms)
        if (declared_name or sample.name) in self._histograms and _LE in sample.labels:
            self._add_bucket(sample, at_ms)
        elif math.isfinite(sample.value):
            inner = _named(sample.name, sample.labels) + double(3, sample.value)
            self._metrics.setdefault(at_ms, []).append(delimited(1, inner))
            self.kept += 1
        else:
            self.skipped += 1

    def add_value(self, name: bytes, labels: Mapping[bytes, bytes], value: float) -> None:
        """One of our own about the scrape; not counted."""
        inner = _named(name, labels) + double(3, value)
        self._metrics.setdefault(self._now_ms, []).append(delimited(1, inner))

    def collections(self) -> list[bytes]:
        """Everything added, in as few records as the bound on their size allows."""
        for ((name, labels), at_ms), buckets in self._buckets.items():
            inner = _named(name, dict(labels)) + _values(buckets)
            self._metrics.setdefault(at_ms, []).append(delimited(2, inner))
        self._buckets = {}
        return [
            collection
            for at_ms, metrics in self._metrics.items()
            for collection in self._packed(metrics, self._identity + number(5, at_ms))
        ]

    def _add_bucket(self, sample: Sample, at_ms: int) -> None:
        try:
            bound = float(sample.labels.pop(_LE))
        except ValueError:
            bound = math.nan
        if math.isnan(bound) or not math.isfinite(sample.value):
            self.skipped += 1
            return
        name = sample.name.removesuffix(_BUCKET)
        series = (name, tuple(sorted(sample.labels.items())))
        self._buckets.setdefault((series, at_ms), {})[bound] = sample.value
        self.kept += 1

    def _packed(self, metrics: Sequence[bytes], identity: bytes) -> list[bytes]:
        packed: list[list[bytes]] = []
        size = COLLECTION_BYTES_MAX
        for metric in metrics:
            if size + len(metric) > COLLECTION_BYTES_MAX:
                packed.append([delimited(1, metric + identity)])
                size = len(metric)
            else:
                packed[-1].append(delimited(1, metric))
                size += len(metric)
        return [b"".join(messages) for messages in packed]


def _values(buckets: Mapping[float, float]) -> bytes:
    """`buckets` is upper bound → count of everything below it."""
    encoded, lower, below = [], -math.inf, 0.0
    for bound, cumulative in sorted(buckets.items()):
        count = number(2, max(0, round(cumulative - below)))
        head = number(3, 1) if lower == -math.inf else b""
        encoded.append(delimited(3, (b"" if head else double(1, lower)) + count + head))
        lower, below = bound, max(below, cumulative)
    return b"".join(encoded)


def _named(name: bytes, labels: Mapping[bytes, bytes]) -> bytes:
    return _name(name) + b"".join(map(_label, labels, labels.values()))


@lru_cache(NAMES_MAX)
def _name(name: bytes) -> bytes:
    return text(1, _clean(name))


@lru_cache(LABELS_MAX)
def _label(name: bytes, value: bytes) -> bytes:
    return delimited(2, text(1, _clean(name)) + text(2, _clean(value)))


def _clean(data: bytes) -> bytes:
    return data if data.isascii() else data.decode("utf-8", "replace").encode()
