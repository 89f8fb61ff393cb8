"""What the query API answers, beside what was sent: minute by minute, for every entity.

The API gives derived values, so the totals of what was sent are derived the same way (truncating
average, success in hundredths of a percent) and every pair must be equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from skyfarer.base.errors import PermanentError
from skyfarer.cli.demo.http import post_json
from skyfarer.testing.expected import MINUTE_MS, Entity, Expected, Totals

SLA_WHOLE = 10_000
ENTITIES_PER_REQUEST = 10
METRICS = ("cpm", "resp_time", "sla")
LOGS_PER_REQUEST = 1_000

_EXPRESSION = """\
  e{number}_{metric}: execExpression(
    expression: "{scope}_{metric}", entity: $entity{number}, duration: $duration
  ) {{ error results {{ values {{ id value }} }} }}
"""


_LOGS = "query demo($of: LogQueryCondition) { queryLogs(condition: $of) { logs { timestamp } } }"


@dataclass(frozen=True)
class Minute:
    """One minute of one entity as the API shows it."""

    calls: int
    resp_time: int
    sla: int

    @property
    def errors(self) -> int:
        """Exact for up to 10,000 calls, where a success ratio belongs to one count only."""
        return self.calls + (-self.sla * self.calls) // SLA_WHOLE


Shown = dict[Entity, dict[int, Minute]]


def derived(total: Totals) -> Minute:
    return Minute(
        total.calls,
        total.latency_sum // total.calls,
        (total.calls - total.errors) * SLA_WHOLE // total.calls,
    )


async def ask(graphql_url: str, expected: Expected) -> Shown:
    """The series of every entity that was sent, over the minutes that were."""
    duration = await _duration(graphql_url, *expected.minutes)
    entities = [
        entity
        for scope in ("service", "service_instance", "endpoint")
        for entity in expected.entities(scope)
    ]
    shown: Shown = {}
    for start in range(0, len(entities), ENTITIES_PER_REQUEST):
        shown |= await _series(
            graphql_url, entities[start : start + ENTITIES_PER_REQUEST], duration
        )
    return shown


async def count_logs(graphql_url: str, expected: Expected) -> int:
    """Minute by minute, for nobody pages as far as all of them; what began in the last minute may
    have written in the next."""
    first, last = expected.minutes
    return sum([await _logs_of(graphql_url, minute) for minute in range(first, last + 2)])


async def _logs_of(url: str, minute: int) -> int:
    paging = {"pageNum": 0, "pageSize": LOGS_PER_REQUEST}
    condition = {"queryDuration": await _duration(url, minute, minute), "paging": paging}
    count = full = 0
    while count == full:
        full += LOGS_PER_REQUEST
        paging["pageNum"] += 1
        count += len((await _query(url, _LOGS, {"of": condition}))["queryLogs"]["logs"])
    return count


def differences(shown: Shown, expected: Expected) -> Iterator[str]:
    """A line for every minute of an entity that the API shows otherwise than it was sent."""
    for entity, minutes in shown.items():
        sent = {minute: derived(total) for minute, total in expected.series(entity).items()}
        for minute in sorted(sent.keys() | minutes.keys()):
            if sent.get(minute) != minutes.get(minute):
                at = datetime.fromtimestamp(minute * 60, UTC).strftime("%H:%M")
                yield (
                    f"{entity.scope} {entity.service} {entity.instance}{entity.endpoint} {at}:"
                    f" shown {minutes.get(minute)}, sent {sent.get(minute)}"
                )


def table(shown: Shown, expected: Expected) -> Iterable[str]:
    """Services, as shown beside as sent; what is equal is printed all the same."""
    yield (
        f"{'service':<12}{'calls':>8}{'sent':>8}{'cpm':>8}{'avg ms':>9}{'sent':>7}"
        f"{'errors':>9}{'sent':>7}"
    )
    first, last = expected.minutes
    for entity in expected.entities("service"):
        minutes = shown.get(entity, {}).values()
        sent = expected.series(entity).values()
        calls, sent_calls = sum(m.calls for m in minutes), sum(t.calls for t in sent)
        average = sum(m.calls * m.resp_time for m in minutes) // max(1, calls)
        sent_average = sum(t.calls * derived(t).resp_time for t in sent) // max(1, sent_calls)
        yield (
            f"{entity.service:<12}{calls:>8}{sent_calls:>8}{calls / (last - first + 1):>8.0f}"
            f"{average:>9}{sent_average:>7}"
            f"{sum(m.errors for m in minutes):>9}{sum(t.errors for t in sent):>7}"
        )


async def _duration(url: str, first: int, last: int) -> dict[str, str]:
    """From the first to the last, in the server's time zone, as the query protocol wants it."""
    answer = await _query(url, "{ time: getTimeInfo { timezone } }", {})
    offset = int(answer["time"]["timezone"])
    sign = -1 if offset < 0 else 1
    zone = timezone(sign * timedelta(hours=abs(offset) // 100, minutes=abs(offset) % 100))
    start, end = (
        datetime.fromtimestamp(minute * MINUTE_MS // 1000, zone).strftime("%Y-%m-%d %H%M")
        for minute in (first, last)
    )
    return {"start": start, "end": end, "step": "MINUTE"}


async def _series(url: str, entities: list[Entity], duration: dict[str, str]) -> Shown:
    names = ", ".join(f"$entity{number}: Entity!" for number in range(len(entities)))
    fields = "".join(
        _EXPRESSION.format(number=number, metric=metric, scope=entity.scope)
        for number, entity in enumerate(entities)
        for metric in METRICS
    )
    variables: dict[str, object] = {
        f"entity{number}": _entity(entity) for number, entity in enumerate(entities)
    }
    document = f"query demo($duration: Duration!, {names}) {{\n{fields}}}"
    answer = await _query(url, document, {"duration": duration, **variables})
    return {
        entity: _minutes({metric: answer[f"e{number}_{metric}"] for metric in METRICS})
        for number, entity in enumerate(entities)
    }


def _entity(entity: Entity) -> dict[str, object]:
    names: dict[str, object] = {"serviceName": entity.service, "normal": True}
    if entity.instance:
        names["serviceInstanceName"] = entity.instance
    if entity.endpoint:
        names["endpointName"] = entity.endpoint
    return names


def _minutes(results: dict[str, Any]) -> dict[int, Minute]:
    values: dict[str, dict[int, int]] = {}
    for metric, result in results.items():
        if result["error"]:
            raise PermanentError(f"the query API refuses a metric: {result['error']}")
        series = result["results"][0]["values"] if result["results"] else []
        values[metric] = {
            int(value["id"]) // MINUTE_MS: int(value["value"])
            for value in series
            if value["value"] is not None
        }
    return {
        minute: Minute(calls, values["resp_time"].get(minute, 0), values["sla"].get(minute, 0))
        for minute, calls in values["cpm"].items()
        if calls
    }


async def _query(url: str, document: str, variables: dict[str, object]) -> Any:
    answer = await post_json(url, {"query": document, "variables": variables})
    if answer.get("errors"):
        raise PermanentError(f"the query API answers: {answer['errors'][0]['message']}")
    return answer["data"]
