"""Dashboards of what has no agent of its own kind: virtual services, browsers, satellites."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from skyfarer.oap.query.dashboards.general import vitals
from skyfarer.oap.query.dashboards.widgets import (
    Metric,
    Part,
    bare,
    dashboard,
    line,
    listed,
    percentiles,
    statements,
    tabs,
    top,
)


def dashboards() -> Iterator[Part]:
    yield from _databases()
    yield from _caches()
    yield from _queues()
    yield from _browsers()
    yield from _satellites()


def _pair(prefix: str, layer: str, metrics: Sequence[Metric], service: Part) -> Iterator[Part]:
    """The list of the layer's services, and the page of one of them."""
    services = listed("ServiceList", f"{prefix}-Service", metrics)
    yield dashboard(f"{prefix}-Root", layer, "All", [[services]])
    yield dashboard(f"{prefix}-Service", layer, "Service", [[service]])


def _spread(kind: str) -> list[Sequence[Part]]:
    load, success, latency = vitals(kind)
    spread = percentiles(f"{kind}_percentile")
    return [
        [line("Load (calls / min)", load), line("Average Response Time (ms)", latency)],
        [line("Success Rate (%)", success), line("Response Time Percentiles (ms)", spread)],
    ]


def _databases() -> Iterator[Part]:
    slow = statements("Slow Statements (ms)", "top_n(top_n_database_statement,20,des)")
    page = tabs(Overview=_spread("database_access"), Slow_Statements=[[slow]])
    yield from _pair("Virtual-Database", "VIRTUAL_DATABASE", vitals("database_access"), page)


def _caches() -> Iterator[Part]:
    reads = statements("Slow Reads (ms)", "top_n(top_n_cache_read_command,20,des)")
    writes = statements("Slow Writes (ms)", "top_n(top_n_cache_write_command,20,des)")
    page = tabs(
        Overview=_spread("cache_access"),
        Reads=_spread("cache_read"),
        Writes=_spread("cache_write"),
        Slow_Commands=[[reads, writes]],
    )
    yield from _pair("Virtual-Cache", "VIRTUAL_CACHE", vitals("cache_access"), page)


def _queues() -> Iterator[Part]:
    metrics = _queue("mq_service")
    topic = "Virtual-MQ-Endpoint"
    page = tabs(
        Overview=_flow("mq_service"),
        Topics=[[listed("EndpointList", topic, _queue("mq_endpoint"))]],
    )
    yield from _pair("Virtual-MQ", "VIRTUAL_MQ", metrics, page)
    yield dashboard(topic, "VIRTUAL_MQ", "Endpoint", _flow("mq_endpoint"))


def _queue(kind: str) -> tuple[Metric, ...]:
    return (
        Metric(f"{kind}_produce_cpm", "Produced", "messages / min"),
        Metric(f"{kind}_consume_cpm", "Consumed", "messages / min"),
        Metric(f"{kind}_consume_latency", "Latency", "ms"),
    )


def _flow(kind: str) -> list[Sequence[Part]]:
    produced, consumed, latency = _queue(kind)
    success = [Metric(f"{kind}_{way}_sla/100", way) for way in ("produce", "consume")]
    spread = percentiles(f"{kind}_consume_percentile")
    return [
        [line("Messages (a minute)", produced, consumed), line("Success Rate (%)", *success)],
        [line("Average Latency (ms)", latency), line("Latency Percentiles (ms)", spread)],
    ]


def _browsers() -> Iterator[Part]:
    views = Metric("browser_app_pv", "Views", "a minute")
    errors = Metric("browser_app_error_rate/100", "Errors", "%")
    version, page = "Browser-Version", "Browser-Page"
    pages = _visits("browser_app_page")
    busiest = [
        top("Most Viewed Pages", "top_n(browser_app_page_pv,10,des)", page),
        top("Pages with Errors (%)", "top_n(browser_app_page_error_rate,10,des)/100", page),
    ]
    app = tabs(
        Overview=[[line("Views", views), line("Errors (%)", errors)], busiest],
        Versions=[[listed("InstanceList", version, _visits("browser_app_single_version"))]],
        Pages=[[listed("EndpointList", page, pages)]],
        Trace=[[bare("Trace")]],
    )
    yield from _pair("Browser", "BROWSER", (views, errors), app)
    views, errors = _visits("browser_app_single_version")
    rows = [[line("Views", views), line("Errors (%)", errors)]]
    yield dashboard(version, "BROWSER", "ServiceInstance", rows)
    yield dashboard(page, "BROWSER", "Endpoint", _page(*pages))


def _visits(kind: str) -> tuple[Metric, Metric]:
    return (
        Metric(f"{kind}_pv", "Views", "a minute"),
        Metric(f"{kind}_error_rate/100", "Errors", "%"),
    )


def _page(views: Metric, errors: Metric) -> list[Sequence[Part]]:
    def times(title: str, *names: str) -> Part:
        return line(title, *(Metric(f"browser_app_page_{name}_avg", name) for name in names))

    return [
        [line("Views", views), line("Errors (%)", errors)],
        [
            times("Until the First Byte (ms)", "dns", "tcp", "ssl", "ttfb"),
            times("Until It Can Be Used (ms)", "fpt", "dom_ready", "load_page"),
        ],
    ]


def _satellites() -> Iterator[Part]:
    def counted(title: str, name: str) -> Part:
        return line(title, Metric(f"satellite_service_{name}"))

    cpu = Metric("satellite_service_server_cpu_utilization", "CPU", "%")
    page = tabs(
        Overview=[
            [line("CPU (%)", cpu), counted("Connections", "grpc_connect_count")],
            [
                counted("Received", "receive_event_count"),
                counted("Fetched", "fetch_event_count"),
                counted("Sent", "send_event_count"),
            ],
            [
                counted("Put into Queues", "queue_input_count"),
                counted("In Queues", "queue_used_count"),
                counted("Room of Queues", "queue_total_capacity"),
            ],
        ]
    )
    yield from _pair("Satellite", "SO11Y_SATELLITE", (cpu,), page)
