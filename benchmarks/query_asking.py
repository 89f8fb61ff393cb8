"""What is asked of the query room: one document an operation, each time of another entity.

A question is what goes over the wire, and the parts of it that are one storage query each: of a
dashboard its expressions, of everything else the question itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Final

import numpy as np

import week
from query_client import gotten, posted
from query_data import SERVICES

HOUR: Final = 61
"""Points of a chart of our page."""
POINTS_MAX: Final = 500
PAGE: Final = 20
# As SkyWalking's page selects them.
OWNER: Final = "scope serviceID serviceName normal serviceInstanceID endpointID endpointName"
FULL: Final = (
    "type results { metric { labels { key value } } "
    f"values {{ name: id value refId: traceID owner {{ {OWNER} }} }} }} error"
)
EXPRESSIONS: Final = (
    "service_cpm",
    "service_resp_time",
    "service_apdex/10000",
    "service_sla/100",
    "service_percentile{p='50,75,90,95,99'}",
    "avg(service_resp_time)",
    "latest(service_cpm)",
    "top_n(service_instance_cpm, 10, des)",
    "top_n(endpoint_cpm, 10, des)",
    "top_n(endpoint_resp_time, 10, des)",
)


@dataclass(frozen=True)
class Question:
    wire: bytes
    parts: tuple[bytes, ...]


def alone(query: str, **variables: object) -> Question:
    wire = posted(query, variables)
    return Question(wire, (wire,))


class Questions:
    """Each method makes one question, by a seed; any time of the week is as good as another."""

    def __init__(self, days: int, segments: int) -> None:
        self._days, self._segments = days, segments
        self._random = Random(11)

    def all(self) -> Mapping[str, Callable[[], Question]]:
        return {
            "services": self.services,
            "instances": self.instances,
            "endpoints": self.endpoints,
            "linear_of_an_hour": lambda: self.linear(HOUR),
            "linear_of_500_points": lambda: self.linear(POINTS_MAX),
            "labelled_of_an_hour": lambda: self.labelled(HOUR),
            "labelled_of_500_points": lambda: self.labelled(POINTS_MAX),
            "expression": self.expression,
            "top_n": self.top,
            "trace_list": self.trace_list,
            "trace": self.trace,
            "logs": self.logs,
            "global_topology": self.global_topology,
            "service_topology": self.service_topology,
            "promql_range": self.promql,
            "dashboard": self.dashboard,
        }

    def services(self) -> Question:
        return alone('{ listServices(layer: "GENERAL") { id name group shortName layers normal } }')

    def instances(self) -> Question:
        return alone(
            """query ($id: ID!, $duration: Duration!) { listInstances(serviceId: $id,
            duration: $duration) { id name language attributes { name value } } }""",
            id=self._service()[0],
            duration=self._minutes(HOUR),
        )

    def endpoints(self) -> Question:
        return alone(
            """query ($id: ID!, $duration: Duration!) { findEndpoint(serviceId: $id, keyword: "",
            limit: 20, duration: $duration) { id name } }""",
            id=self._service()[0],
            duration=self._minutes(HOUR),
        )

    def linear(self, points: int) -> Question:
        return alone(
            """query ($condition: MetricsCondition!, $duration: Duration!) {
            readMetricsValues(condition: $condition, duration: $duration) {
            label values { values { id value isEmptyValue } } } }""",
            condition=self._condition("service_resp_time"),
            duration=self._minutes(points),
        )

    def labelled(self, points: int) -> Question:
        return alone(
            """query ($condition: MetricsCondition!, $labels: [String!]!, $duration: Duration!) {
            readLabeledMetricsValues(condition: $condition, labels: $labels, duration: $duration) {
            label values { values { id value } } } }""",
            condition=self._condition("service_percentile"),
            labels=["0", "1", "2", "3", "4"],
            duration=self._minutes(points),
        )

    def expression(self) -> Question:
        return self._expressions(("avg(service_cpm) * 60",), FULL)

    def top(self) -> Question:
        return self._expressions(("top_n(endpoint_resp_time, 20, des)",), FULL)

    def dashboard(self) -> Question:
        """Ten expressions in one document, the fields as SkyWalking's page selects them."""
        return self._expressions(EXPRESSIONS, FULL)

    def trace_list(self) -> Question:
        return alone(
            """query ($condition: TraceQueryCondition) { data: queryBasicTraces(
            condition: $condition) { traces { key: segmentId endpointNames duration start isError
            traceIds } } }""",
            condition={
                "serviceId": self._service()[0],
                "queryDuration": self._days_of_week(),
                "traceState": "ERROR",
                "queryOrder": "BY_START_TIME",
                "paging": {"pageNum": 1, "pageSize": PAGE},
            },
        )

    def trace(self) -> Question:
        day, number = self._random.randrange(self._days), self._random.randrange(self._segments)
        (found,) = week.hex_ids(week.TRACE, day, np.array([number // week.FAN])).to_pylist()
        return alone(
            """query ($id: ID!) { trace: queryTrace(traceId: $id) { spans { traceId segmentId
            spanId parentSpanId refs { traceId parentSegmentId parentSpanId type } serviceCode
            serviceInstanceName startTime endTime endpointName type peer component isError layer
            tags { key value } logs { time data { key value } } } } }""",
            id=found,
        )

    def logs(self) -> Question:
        return alone(
            """query ($condition: LogQueryCondition) { queryLogs(condition: $condition) {
            errorReason logs { serviceName serviceId serviceInstanceName endpointName traceId
            timestamp contentType content tags { key value } } } }""",
            condition={
                "serviceId": self._service()[0],
                "queryDuration": self._days_of_week(),
                "tags": [{"key": "level", "value": "ERROR"}],
                "paging": {"pageNum": 1, "pageSize": PAGE},
            },
        )

    def global_topology(self) -> Question:
        return alone(
            """query ($duration: Duration!) { getGlobalTopology(duration: $duration) {
            nodes { id name type isReal layers } calls { id source target detectPoints
            sourceComponents targetComponents } } }""",
            duration=self._minutes(HOUR),
        )

    def service_topology(self) -> Question:
        return alone(
            """query ($id: ID!, $duration: Duration!) { getServiceTopology(serviceId: $id,
            duration: $duration) { nodes { id name type isReal layers } calls { id source target
            detectPoints sourceComponents targetComponents } } }""",
            id=self._service()[0],
            duration=self._minutes(HOUR),
        )

    def promql(self) -> Question:
        day, minute = self._random.randrange(self._days), self._random.randrange(1440 - HOUR)
        start = (week.minute_of(day) + minute) * 60
        wire = gotten(
            "/prometheus/api/v1/query_range",
            query=f'service_cpm{{service="{self._service()[1]}",layer="GENERAL"}}',
            start=start,
            end=start + (HOUR - 1) * 60,
            step=60,
        )
        return Question(wire, (wire,))

    def _expressions(self, texts: tuple[str, ...], fields: str) -> Question:
        variables = {
            "entity": {"serviceName": self._service()[1], "normal": True},
            "duration": self._minutes(HOUR),
        }
        parts = tuple(posted(_document((text,), fields), variables) for text in texts)
        return Question(posted(_document(texts, fields), variables), parts)

    def _service(self) -> tuple[str, str]:
        number = self._random.randrange(week.SERVICES)
        return SERVICES[number], week.service_name(number)

    def _condition(self, metric: str) -> dict[str, object]:
        entity = {"scope": "Service", "serviceName": self._service()[1], "normal": True}
        return {"name": metric, "entity": entity}

    def _minutes(self, points: int) -> dict[str, str]:
        """Of one day."""
        day, first = self._random.randrange(self._days), self._random.randrange(1440 - points)
        date = f"{week.FIRST_DAY.year}-{week.FIRST_DAY.month:02d}-{week.FIRST_DAY.day + day:02d}"
        start, end = (f"{date} {n // 60:02d}{n % 60:02d}" for n in (first, first + points - 1))
        return {"start": start, "end": end, "step": "MINUTE"}

    def _days_of_week(self) -> dict[str, str]:
        dates = (str(week.day_bucket(day)) for day in (0, self._days - 1))
        first, last = (f"{one[:4]}-{one[4:6]}-{one[6:]}" for one in dates)
        return {"start": f"{first} 000000", "end": f"{last} 235959", "step": "SECOND"}


def _document(texts: tuple[str, ...], fields: str) -> str:
    asked = " ".join(
        f'e{n}: execExpression(expression: "{text}", entity: $entity, duration: $duration) '
        f"{{ {fields} }}"
        for n, text in enumerate(texts)
    )
    return f"query queryData($entity: Entity!, $duration: Duration!) {{ {asked} }}"
