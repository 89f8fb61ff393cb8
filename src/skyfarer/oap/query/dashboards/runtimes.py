"""What an instance says of the runtime it has: a tab each, empty for those it does not have."""

from __future__ import annotations

from collections.abc import Sequence

from skyfarer.base.units import MIB
from skyfarer.oap.query.dashboards.widgets import Metric, Part, line


def jvm() -> list[Sequence[Part]]:
    def lines(title: str, pattern: str, *names: str, divisor: str = "") -> Part:
        metrics = (Metric(f"instance_jvm_{pattern.format(n)}{divisor}", n) for n in names)
        return line(title, *metrics)

    return [
        [
            lines("CPU (%)", "{}", "cpu"),
            lines("Memory (MB)", "memory_{}", "heap", "heap_max", "noheap", divisor=f"/{MIB}"),
        ],
        [
            lines("Garbage Collection (ms)", "{}_gc_time", "young", "old", "normal"),
            lines("Garbage Collections", "{}_gc_count", "young", "old", "normal"),
        ],
        [
            lines("Threads", "thread_{}_count", "live", "daemon", "peak"),
            lines("Classes Loaded", "class_{}_class_count", "loaded", "total_unloaded"),
        ],
    ]


def python() -> list[Sequence[Part]]:
    def lines(title: str, *names: str) -> Part:
        return line(title, *(Metric(f"meter_instance_pvm_{name}", name) for name in names))

    return [
        [
            lines("CPU (%)", "process_cpu_utilization", "total_cpu_utilization"),
            lines("Memory (%)", "process_mem_utilization", "total_mem_utilization"),
        ],
        [
            lines("Threads", "thread_active_count"),
            lines("Garbage Collections", "gc_g0", "gc_g1", "gc_g2"),
            lines("Garbage Collection (ms)", "gc_time"),
        ],
    ]


def clr() -> list[Sequence[Part]]:
    def lines(title: str, *names: str, divisor: str = "") -> Part:
        return line(title, *(Metric(f"instance_clr_{name}{divisor}", name) for name in names))

    return [
        [
            lines("CPU (%)", "cpu"),
            lines("Heap (MB)", "heap_memory", divisor=f"/{MIB}"),
        ],
        [
            lines("Collections", *(f"gen{n}_collect_count" for n in range(3))),
            lines("Threads", "available_worker_threads", "max_worker_threads"),
        ],
    ]
