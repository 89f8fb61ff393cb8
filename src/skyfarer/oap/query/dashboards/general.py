"""Dashboards of services with agents, and of those behind the proxies of a mesh.

Seven a layer, named by a prefix: Root, Service, Instance, Endpoint, and the three relations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from skyfarer.oap.query.dashboards import runtimes
from skyfarer.oap.query.dashboards.widgets import (
    Metric,
    Part,
    bare,
    card,
    dashboard,
    line,
    listed,
    percentiles,
    statements,
    tabs,
    top,
)

EVENT_ROWS: Final = 10


def vitals(kind: str, sla: str = "sla") -> tuple[Metric, Metric, Metric]:
    """Load, success and latency of services, instances, endpoints or relations."""
    return (
        Metric(f"{kind}_cpm", "Load", "calls / min"),
        Metric(f"{kind}_{sla}/100", "Success Rate", "%"),
        Metric(f"{kind}_resp_time", "Latency", "ms"),
    )


SERVICE: Final = (*vitals("service"), Metric("service_apdex/10000", "Apdex"))
INSTANCE: Final = vitals("service_instance")
ENDPOINT: Final = vitals("endpoint")


def dashboards(prefix: str, layer: str) -> Iterator[Part]:
    yield dashboard(f"{prefix}-Root", layer, "All", [[_root(prefix)]])
    event = bare("Event", EVENT_ROWS) | {"eventAssociate": True}
    yield dashboard(f"{prefix}-Service", layer, "Service", [[event], [_service(prefix)]])
    popup = {
        "expressions": [metric.averaged() for metric in INSTANCE],
        "expressionsConfig": [metric.config() for metric in INSTANCE],
    }
    yield dashboard(f"{prefix}-Instance", layer, "ServiceInstance", [[_instance()]]) | popup
    yield dashboard(f"{prefix}-Endpoint", layer, "Endpoint", [[_endpoint(prefix)]])
    yield from _relations(prefix, layer)


def _root(prefix: str) -> Part:
    return tabs(
        Services=[[listed("ServiceList", f"{prefix}-Service", SERVICE)]],
        Topology=[[_service_map(prefix)]],
        Trace=[[bare("Trace")]],
        Log=[[bare("Log")]],
    )


def _service(prefix: str) -> Part:
    load, success, latency, apdex = SERVICE
    return tabs(
        Overview=[
            [card("Load", load), card("Success Rate", success), card("Apdex", apdex)],
            [line("Load (calls / min)", load), line("Average Response Time (ms)", latency)],
            [
                line("Response Time Percentiles (ms)", percentiles("service_percentile")),
                line("Success Rate (%)", success),
                line("Apdex", apdex),
            ],
            [
                line("Messages Consumed", Metric("service_mq_consume_count", "Messages")),
                line("Message Latency (ms)", Metric("service_mq_consume_latency", "Latency")),
            ],
            _tops("service_instance", f"{prefix}-Instance", "Instances"),
            _tops("endpoint", f"{prefix}-Endpoint", "Endpoints"),
        ],
        Instances=[[listed("InstanceList", f"{prefix}-Instance", INSTANCE)]],
        Endpoints=[[listed("EndpointList", f"{prefix}-Endpoint", ENDPOINT)]],
        Topology=[[_service_map(prefix)]],
        Trace=[[bare("Trace")]],
        Log=[[bare("Log")]],
        Slow_Statements=[
            [statements("Slow Statements (ms)", "top_n(top_n_service_database_statement,20,des)")]
        ],
    )


def _tops(kind: str, of: str, what: str) -> list[Part]:
    return [
        top(f"Busiest {what} (calls / min)", f"top_n({kind}_cpm,10,des)", of),
        top(f"Slowest {what} (ms)", f"top_n({kind}_resp_time,10,des)", of),
        top(f"{what} that Fail (%)", f"top_n({kind}_sla,10,asc)/100", of),
    ]


def _instance() -> Part:
    load, success, latency = INSTANCE
    return tabs(
        Overview=[
            [line("Load (calls / min)", load), line("Average Response Time (ms)", latency)],
            [line("Success Rate (%)", success)],
        ],
        Trace=[[bare("Trace")]],
        Log=[[bare("Log")]],
        JVM=runtimes.jvm(),
        Python=runtimes.python(),
        CLR=runtimes.clr(),
    )


def _endpoint(prefix: str) -> Part:
    load, success, latency = ENDPOINT
    consumed = Metric("endpoint_mq_consume_latency", "Latency")
    return tabs(
        Overview=[
            [line("Load (calls / min)", load), line("Average Response Time (ms)", latency)],
            [
                line("Response Time Percentiles (ms)", percentiles("endpoint_percentile")),
                line("Success Rate (%)", success),
                line("Message Latency (ms)", consumed),
            ],
        ],
        Topology=[
            [
                _map(
                    f"{prefix}-Endpoint",
                    f"{prefix}-Endpoint-Relation",
                    ENDPOINT,
                    vitals("endpoint_relation"),
                    (),
                )
            ]
        ],
        Trace=[[bare("Trace")]],
        Log=[[bare("Log")]],
    )


def _relations(prefix: str, layer: str) -> Iterator[Part]:
    client, server = "service_relation_client", "service_relation_server"
    instances = _map(
        f"{prefix}-Instance",
        f"{prefix}-Instance-Relation",
        INSTANCE,
        vitals("service_instance_relation_server", "call_sla"),
        vitals("service_instance_relation_client", "call_sla"),
    )
    both = tabs(Overview=_ends(client, server), Topology=[[instances]])
    yield dashboard(f"{prefix}-Service-Relation", layer, "ServiceRelation", [[both]])
    client, server = "service_instance_relation_client", "service_instance_relation_server"
    rows = _ends(client, server)
    yield dashboard(f"{prefix}-Instance-Relation", layer, "ServiceInstanceRelation", rows)
    load, success, latency = vitals("endpoint_relation")
    spread = percentiles("endpoint_relation_percentile")
    rows = [
        [line("Load (calls / min)", load), line("Average Response Time (ms)", latency)],
        [line("Success Rate (%)", success), line("Response Time Percentiles (ms)", spread)],
    ]
    yield dashboard(f"{prefix}-Endpoint-Relation", layer, "EndpointRelation", rows)


def _ends(client: str, server: str) -> list[Sequence[Part]]:
    """What each end of a call saw, side by side."""
    ends = {"Client": client, "Server": server}
    of = {end: vitals(kind, "call_sla") for end, kind in ends.items()}
    return [
        [line(f"Load ({end}, calls / min)", of[end][0]) for end in ends],
        [line(f"Average Response Time ({end}, ms)", of[end][2]) for end in ends],
        [
            line(f"Response Time Percentiles ({end}, ms)", percentiles(f"{kind}_percentile"))
            for end, kind in ends.items()
        ],
        [line(f"Success Rate ({end}, %)", of[end][1]) for end in ends],
    ]


def _service_map(prefix: str) -> Part:
    part = _map(
        f"{prefix}-Service",
        f"{prefix}-Service-Relation",
        vitals("service"),
        vitals("service_relation_server", "call_sla"),
        vitals("service_relation_client", "call_sla"),
    )
    scopes = {"Service": "Service", "ServiceInstance": "Instance", "Endpoint": "Endpoint"}
    part["nodeDashboard"] = [
        {"scope": scope, "dashboard": f"{prefix}-{name}"} for scope, name in scopes.items()
    ]
    failing = "(avg(service_sla) < 9500) * (avg(service_cpm) > 1) == 1"
    part["legendMQE"] = {"expression": failing}
    said = {"healthy": "Healthy", "unhealthy": "Busy, and less than 95 % succeed"}
    return {**part, "description": said}


def _map(
    node: str,
    link: str,
    nodes: Sequence[Metric],
    servers: Sequence[Metric],
    clients: Sequence[Metric],
) -> Part:
    part = bare("Topology") | {"graph": {"showDepth": True}, "nodeMetrics": [], "description": {}}
    part |= {"nodeDashboard": node, "linkDashboard": link}
    for key, metrics in (("node", nodes), ("linkServer", servers), ("linkClient", clients)):
        part[f"{key}Expressions"] = [metric.averaged() for metric in metrics]
        part[f"{key}MetricConfig"] = [metric.config() for metric in metrics]
    return part
