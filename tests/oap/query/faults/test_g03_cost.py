"""What a document would cost is reckoned before it runs, and whoever asks for little is served."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from skyfarer.oap.query import limits
from skyfarer.oap.query.engine import Engine, Request
from skyfarer.telemetry.metrics import Registry
from skyfarer.testing.clock import HandClock

DURATION = '{start: "2026-11-15 0800", end: "2026-11-15 0829", step: MINUTE}'
LONG = '{start: "2026-11-15 0000", end: "2026-11-15 0819", step: MINUTE}'


def test_the_cost_is_told_and_nothing_is_read(oap):
    oap.reader.failure = AssertionError("storage was asked")
    one = f'getServiceTopology(serviceId: "x", duration: {DURATION}) {{ nodes {{ id }} }}'
    assert "internal error" in oap.errors(f"{{ {one} }}")[0], "it reads when it runs"
    many = " ".join(f"t{n}: {one}" for n in range(40))
    fields = 40 * (limits.WEIGHTS["getServiceTopology"] + 2)
    assert fields > limits.FIELDS_MAX
    assert oap.errors(f"{{ {many} }}") == [
        f"the document selects {fields} fields, more than {limits.FIELDS_MAX}"
    ]


def test_an_expression_that_costs_too_much_says_so_and_reads_nothing(oap):
    oap.reader.failure = AssertionError("storage was asked")
    sum_of_many = " + ".join(["service_cpm"] * (limits.EXPRESSION_METRICS_MAX + 1))
    found = oap.ask(
        f"""query ($expression: String!) {{ execExpression(expression: $expression, duration:
        {DURATION}, entity: {{serviceName: "s", normal: true}}) {{ error results {{ values {{
        value }} }} }} }}""",
        expression=sum_of_many,
    )["execExpression"]
    assert str(limits.EXPRESSION_METRICS_MAX) in found["error"]
    assert found["results"] == []


EXPRESSION = """query ($entity: Entity!, $expression: String!, $duration: Duration = {whole}) {{
  {fields} }}"""
ONE_EXPRESSION = """e{n}: execExpression(expression: $expression, entity: $entity,
  duration: $duration) {{ type error }}"""


def expressions(count: int, duration: str = LONG) -> str:
    fields = " ".join(ONE_EXPRESSION.format(n=n) for n in range(count))
    return EXPRESSION.format(whole=duration, fields=fields)


def refused_for(answer: dict[str, object], points: int) -> bool:
    return answer == {
        "errors": [
            {
                "message": f"the document would read {points} points, more than "
                f"{limits.POINTS_READ_MAX}: ask for a shorter time, or for fewer metrics and lists "
                "at once"
            }
        ]
    }


@pytest.mark.parametrize(
    ("expression", "count", "points"),
    [
        ("service_cpm", 200, 200 * 500),
        ("avg(service_cpm) + service_sla / service_resp_time", 200, 200 * 3 * 500),
        ("top_n(service_cpm, 10, des)", 20, 20 * 100 * 500),
    ],
)
def test_what_a_page_asks_for_at_most_is_answered(oap, expression, count, points):
    assert points <= limits.POINTS_READ_MAX
    asked = expressions(count)
    assert len(oap.ask(asked, expression=expression, entity={})) == count


@pytest.mark.parametrize(
    ("expression", "count", "points"),
    [
        ("top_n(service_cpm, 10, des)", 21, 21 * 100 * 500),
        ("top_n_of(top_n(service_cpm, 9, des), top_n(service_sla, 9, des), 5, des)", 11, 1_100_000),
        (" + ".join(["service_cpm"] * 32), 63, 63 * 32 * 500),
        (
            "view_as_seq(rate(service_cpm, 2), round(baseline(service_sla, value), 1)) + own_mean",
            *(700, 700 * 3 * 500),
        ),
    ],
)
def test_lists_times_metrics_times_points_are_reckoned_before_anything_is_read(
    oap, expression, count, points
):
    oap.reader.failure = AssertionError("storage was asked")
    answer = oap.post(expressions(count), expression=expression, entity={})
    assert refused_for(answer, points), answer


def test_what_is_written_in_the_document_counts_as_variables_do(oap):
    oap.reader.failure = AssertionError("storage was asked")
    ranking = 'sortMetrics(condition: {name: "service_cpm", topN: 9, order: DES}, duration: '
    fields = " ".join(f"s{n}: {ranking} {LONG}) {{ id }}" for n in range(21))
    assert refused_for(oap.post(f"{{ {fields} }}"), 21 * 100 * 500)
    spread = f"query {{ ...all ... {{ ...more }} }} fragment all on Query {{ {fields} }}"
    more = f"fragment more on Query {{ t: {ranking} {LONG}) {{ id }} }}"
    assert refused_for(oap.post(f"{spread} {more}"), 22 * 100 * 500)


def test_pages_that_lie_deep_and_maps_of_a_long_time_are_reckoned_too(oap):
    oap.reader.failure = AssertionError("storage was asked")
    paging = "{pageNum: 10, pageSize: 1000}"
    page = f"""queryBasicTraces(condition: {{queryDuration: {DURATION}, traceState: ALL,
      queryOrder: BY_DURATION, paging: {paging}}}) {{ traces {{ segmentId }} }}"""
    fields = " ".join(f"p{n}: {page}" for n in range(11))
    assert refused_for(oap.post(f"{{ {fields} }}"), 11 * 10 * 10_000)
    endpoints = 'findEndpoint(serviceId: "s", limit: 999999, duration: $d) { id }'
    many = " ".join(f"e{n}: {endpoints}" for n in range(110))
    answer = oap.post(f"query ($d: Duration) {{ {many} }}", d=None)
    assert refused_for(answer, 110 * 10 * limits.ENDPOINTS_MAX)


@pytest.mark.parametrize("field", ["listServices", "listMetrics"])
def test_a_list_of_all_that_there_is_costs_more_than_a_field(oap, field):
    many = " ".join(f"l{n}: {field} {{ name }}" for n in range(limits.FIELDS_MAX // 20))
    assert "more than" in oap.errors(f"{{ {many} }}")[0]


@pytest.mark.parametrize(
    "variables",
    [
        {"d": {"start": 1, "end": None, "step": []}},
        {"d": "always"},
        {"d": {"start": "2026-11-15 0800", "end": "x", "step": "MINUTE"}},
        {"d": {"start": "2026-11-15 0800", "end": "2026-11-15 0800", "step": "YEAR"}},
        {},
    ],
)
def test_what_does_not_fit_its_type_is_refused_for_that(oap, variables):
    field = 'readMetricsValue(condition: {name: "service_cpm", entity: {}}, duration: $d)'
    (error, *_) = oap.errors(f"query ($d: Duration!) {{ {field} }}", **variables)
    assert "points" not in error and "internal" not in error


class Slow:
    """In the place of resolvers: every root field takes some seconds of the clock."""

    def __init__(self, real: Engine, clock: HandClock, seconds: float) -> None:
        self._real, self._clock, self._seconds = real, clock, seconds

    def table(self):
        roots = self._real._schema.query_type.fields
        return dict.fromkeys(roots, self._take)

    def changes(self):
        roots = self._real._schema.mutation_type.fields
        return dict.fromkeys(roots, self._take)

    def _take(self, **_: object) -> str:
        self._clock.seconds += self._seconds
        return "late"


def test_a_document_that_takes_too_long_is_not_finished(oap):
    clock, registry = HandClock(0), Registry()
    real = oap.another(oap.health)._engine
    engine = Engine(Slow(real, clock, limits.ANSWER_S_MAX / 4), registry, clock)
    found = engine.answer(Request("{" + " ".join(f"v{n}: version" for n in range(8)) + "}"))
    assert list(found["data"].values()) == ["late"] * 4 + [None] * 4
    assert {error["message"] for error in found["errors"]} == {
        f"the answer took longer than {limits.ANSWER_S_MAX:g} s: ask for less at a time"
    }
    lines = registry.render().splitlines()
    assert 'query_requests_total{operation="version",outcome="refused"} 4' in lines


def test_those_who_ask_for_little_are_answered_while_others_are_refused(oap):
    dear = {"query": "{" + " version" * (limits.FIELDS_MAX + 1) + "}"}
    cheap = {"query": "{ version }"}
    with ThreadPoolExecutor(16) as pool:
        answers = list(
            pool.map(
                lambda n: oap.http.post("/graphql", json=dear if n % 2 else cheap).json(),
                range(80),
            )
        )
    assert all("errors" in answer for answer in answers[1::2])
    assert all(answer["data"]["version"] for answer in answers[::2])
