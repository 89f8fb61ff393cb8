"""What a document would cost is reckoned before it runs, and whoever asks for little is served."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from skyfarer.oap.query import limits
from skyfarer.oap.query.engine import Engine, Request
from skyfarer.telemetry.metrics import Registry
from skyfarer.testing.clock import HandClock

DURATION = '{start: "2026-11-15 0800", end: "2026-11-15 0829", step: MINUTE}'


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
