"""What an instance says of the runtime it has: charts by language."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from skyfarer.ui.api import OapClient
from skyfarer.ui.model import Series, Service
from skyfarer.ui.window import Buckets

MIB: Final = 1_048_576


@dataclass(frozen=True)
class Gauge:
    """A chart: its lines' names, each with an expression."""

    title: str
    unit: str
    lines: Mapping[str, str]


def _jvm(pattern: str, names: Iterable[str], divisor: str = "") -> dict[str, str]:
    return {
        name.replace("_", " "): f"instance_jvm_{pattern.format(name)}{divisor}" for name in names
    }


def _meters(prefix: str, divisor: str = "", **named: str) -> dict[str, str]:
    return {name: f"meter_instance_{prefix}_{metric}{divisor}" for name, metric in named.items()}


_IN_MIB: Final = f" / {MIB}"
RUNTIMES: Final[Mapping[str, tuple[Gauge, ...]]] = {
    "JAVA": (
        Gauge("JVM CPU", " %", _jvm("{}", ["cpu"])),
        Gauge("JVM memory", " MB", _jvm("memory_{}", ["heap_max", "noheap", "heap"], _IN_MIB)),
        Gauge("JVM garbage collection", " ms", _jvm("{}_gc_time", ["normal", "old", "young"])),
        Gauge("JVM threads", "", _jvm("thread_{}_count", ["peak", "daemon", "live"])),
    ),
    "PYTHON": (
        Gauge(
            "Python CPU",
            " %",
            _meters("pvm", machine="total_cpu_utilization", process="process_cpu_utilization"),
        ),
        Gauge(
            "Python memory",
            " %",
            _meters("pvm", machine="total_mem_utilization", process="process_mem_utilization"),
        ),
        Gauge("Python garbage collection", " ms", _meters("pvm", time="gc_time")),
        Gauge("Python threads", "", _meters("pvm", active="thread_active_count")),
    ),
    "NODEJS": (
        Gauge("Node.js CPU", " %", _meters("nodejs", process="process_cpu")),
        Gauge(
            "Node.js memory",
            " MB",
            _meters("nodejs", _IN_MIB, limit="heap_limit", resident="rss", heap="heap_used"),
        ),
    ),
    "GO": (
        Gauge("Go CPU of the host", " %", _meters("host", used="cpu_used_rate")),
        Gauge(
            "Go memory", " MB", _meters("golang", _IN_MIB, stack="stack_used", heap="heap_alloc")
        ),
        Gauge("Go garbage collections", "", _meters("golang", collections="gc_count")),
        Gauge(
            "Go threads",
            "",
            _meters("golang", threads="os_threads_num", goroutines="live_goroutines_num"),
        ),
    ),
    "DOTNET": (
        Gauge("CLR CPU", " %", {"cpu": "instance_clr_cpu"}),
        Gauge("CLR memory", " MB", {"heap": f"instance_clr_heap_memory{_IN_MIB}"}),
        Gauge(
            "CLR collections",
            "",
            {f"gen {n}": f"instance_clr_gen{n}_collect_count" for n in (2, 1, 0)},
        ),
        Gauge("CLR threads", "", {"workers available": "instance_clr_available_worker_threads"}),
    ),
}


@dataclass(frozen=True)
class Runtime:
    """Of one instance; only the charts that have a value."""

    instance: str
    gauges: tuple[tuple[Gauge, Mapping[str, Series]], ...]


async def runtime(
    client: OapClient, buckets: Buckets, service: Service, instance: str, language: str
) -> Runtime:
    """Whose language is not known is asked for all of them."""
    gauges = RUNTIMES.get(language) or tuple(g for some in RUNTIMES.values() for g in some)
    asked = [expression for gauge in gauges for expression in gauge.lines.values()]
    fields = " ".join(
        f'm{number}: execExpression(expression: "{text}", entity: $entity, duration: $duration)'
        " { results { values { value } } }"
        for number, text in enumerate(asked)
    )
    entity = {
        "serviceName": service.name,
        "normal": service.normal,
        "serviceInstanceName": instance,
    }
    document = f"query runtime($entity: Entity!, $duration: Duration!) {{ {fields} }}"
    data = await client.graphql(document, {"entity": entity, "duration": buckets.duration()})
    found = {
        text: _series(data[f"m{number}"], buckets.growing) for number, text in enumerate(asked)
    }
    return Runtime(instance, tuple(_told(gauges, found)))


def _told(
    gauges: Iterable[Gauge], found: Mapping[str, Series]
) -> Iterable[tuple[Gauge, Mapping[str, Series]]]:
    for gauge in gauges:
        lines = {name: found[text] for name, text in gauge.lines.items()}
        filled = {
            name: one for name, one in lines.items() if any(v is not None for v in one.values)
        }
        if filled:
            yield gauge, filled


def _series(result: Mapping[str, Any], growing: bool) -> Series:
    values = [value["value"] for one in result["results"][:1] for value in one["values"]]
    return Series(tuple(None if one is None else int(float(one)) for one in values), growing)
