"""Every mistake is one sentence at its place, with the name that was probably meant."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyfarer.oap.oal.compiler import PROBLEMS_SHOWN_MAX, Text, compile_texts, listed, shipped
from skyfarer.oap.oal.parser import NAME_CHARS_MAX, TEXT_CHARS_MAX


def problems(text: str) -> list[str]:
    return [str(problem) for problem in compile_texts([Text("f", text)]).problems]


MISTAKES = [
    # names
    ("a = from(Servise.latency).sum();", "1:10: there is no source 'Servise'; did you mean 'Serv"),
    ("a = from(Service.latensy).sum();", "1:18: Service has no attribute 'latensy'; did you mean"),
    (
        "a = from(Service.sideCar.x).sum();",
        "1:18: Service has no attribute 'sideCar.x'; there are: attr0",
    ),
    ("a = from(Service.latency).longAvrg();", "1:27: there is no function 'longAvrg'; did you me"),
    ('a = from(Service.*).cpm().decorator("X");', "1:37: there is no decorator 'X'; there are: "),
    (
        'a = from(Endpoint.*).cpm().decorator("ServiceDecorator");',
        "1:38: 'ServiceDecorator' decorates Service, and this source is Endpoint",
    ),
    ("a = from(Service.*).cpm().decorate(1);", "1:27: nothing but a decorator follows the functi"),
    ("a = from((double)Service.name).sum();", "1:11: there is no cast 'double'; there are: int, "),
    (
        "a = from(Service.*).filter(type == RequestType.MQQ).cpm();",
        "1:36: RequestType has no value 'MQQ'; did you mean 'MQ'?",
    ),
    # types
    ("a = from(Service.*).sum();", "1:10: sum needs a whole number; name an attribute in place of"),
    ("a = from(Service.name).sum();", "1:10: sum needs a whole number, and 'name' is a text"),
    ("a = from(Service.status).maxDouble();", "1:10: maxDouble needs a number, and 'status' is tr"),
    ("a = from(ServiceInstanceJVMCPU.usePercent).sum();", "1:10: sum needs a whole number, and "),
    ("a = from(Service.tag).cpm();", "1:18: 'tag' needs a key, as in tag[\"key\"]"),
    ('a = from(Service.name["x"]).cpm();', "1:18: 'name' is no map and takes no key"),
    ("a = from((long)Service.status).sum();", "1:10: a cast reads a number from a text, and this"),
    ("a = from(Service.*).filter(status == 1).cpm();", "1:38: 'status' is compared with true or f"),
    ("a = from(Service.*).filter(latency == true).cpm();", "1:39: 'latency' is compared with a wh"),
    ("a = from(Service.*).filter(latency != null).cpm();", "1:39: 'latency' is compared with a wh"),
    (
        'a = from(Service.*).filter(type == "MQ").cpm();',
        "1:36: 'type' is compared with a value of ",
    ),
    (
        "a = from(Service.*).filter(type == DetectPoint.SERVER).cpm();",
        "1:36: 'type' is compared with a value of RequestType, as in RequestType.DATABASE",
    ),
    ('a = from(Service.*).filter(name > "a").cpm();', "1:33: '>' needs a number, and 'name' is no"),
    ('a = from(Service.*).filter(latency like "a%").cpm();', "1:36: 'like' needs a text, and 'lat"),
    ('a = from(Service.*).filter(name like "a").cpm();', "1:38: a pattern begins or ends with '%'"),
    ('a = from(Service.*).filter(name contain "a").cpm();', "1:33: 'contain' needs a list, and 'n"),
    ("a = from(Service.*).filter(latency in 5).cpm();", "1:39: 'in' needs a list, as in [1, 2]"),
    ("a = from(Service.*).filter(latency == [5]).cpm();", "1:39: only 'in' takes a list, not '=='"),
    ("a = from(Service.*).filter((long)name > null).cpm();", "1:41: nothing is > null"),
    # arguments
    ("a = from(Service.latency).percentile2();", "1:27: percentile2 takes 1 argument, not 0"),
    ("a = from(Service.*).labelCount();", "1:21: labelCount takes 1 or 2 arguments, not 0"),
    ("a = from(Service.latency).percentile2(0);", "1:39: percentile2 needs a whole number above 0"),
    ("a = from(Service.*).percent(status);", "1:29: percent needs a condition, as in status == tr"),
    ("a = from(Service.latency).apdex(status, name);", "1:33: apdex needs a text attribute here"),
    (
        "a = from(ServiceMeter.value).labelTotal(series, pipe);",
        "1:49: labelTotal needs names of labels, as in ",
    ),
    (
        'a = from(ServiceMeter.value).labelTotal(series, "pipe,");',
        '1:49: labelTotal needs names of labels, as in "pipe, status" here',
    ),
    # grammar
    ("a = form(Service.*).cpm();", "1:5: 'from(' is expected here, not 'form'"),
    ("a = from(Service.*).cpm()", "1:26: ';' is expected here, not the end of the file"),
    ("a = from(Service.*);", "1:20: '.' is expected here, not ';'"),
    (
        "a = from(Service.*).filter(status = true).cpm();",
        "1:35: a comparison is expected here, not",
    ),
    (
        "a = from(Service.*).filter(type == MQ).cpm();",
        "1:36: a value: a number, a text in quotes, ",
    ),
    (
        "\ndisable(segmnt);",
        "2:9: there is no stream 'segmnt'; did you mean 'segment'?",
    ),
    (
        "disable(zipkin);",
        "1:9: there is no stream 'zipkin'; name a metric or one of: event, log, segment, top_n_c",
    ),
    ("disable(5);", "1:9: the name of a stream is expected here, not '5'"),
    ("5 = from(Service.*).cpm();", "1:1: the name of a metric, or disable(...) is expected here, "),
    (
        'a = from(Service.*).filter(name == "x).cpm();',
        "1:36: this text has no closing quote on its",
    ),
    ("\n /* /* */", "2:2: this comment is never closed; end it with '*/'"),
    ("a = from(Service.*).cpm(); ?", "1:28: '?' has no meaning here"),
    (f"{'a' * (NAME_CHARS_MAX + 1)} = from(Service.*).cpm();", "1:1: a name has at most 200 chara"),
    (
        "a = from(Service.*).filter(latency > 9223372036854775808).cpm();",
        "1:38: this number does not fit into 64 bits",
    ),
    (
        "a = from(Service.*).cpm();\na = from(Service.*).cpm();",
        "2:1: 'a' is defined already, at f:",
    ),
]


@pytest.mark.parametrize(("text", "says"), MISTAKES)
def test_a_mistake_is_said_once_at_its_place(text: str, says: str) -> None:
    found = problems(text)
    assert len(found) == 1
    assert found[0].startswith(f"f:{says}")


def test_every_statement_that_is_wrong_is_named_and_the_others_are_planned() -> None:
    text = """
    a = from(Service.*).cmp();
    b = from(Service.*).cpm();
    c = from(Service.*)cpm();
    d = from(Service.*).filter(name == ";").cpm();
    e = from(Nothing.*).cpm();
    """
    compiled = compile_texts([Text("f", text)])
    assert [problem.place.line for problem in compiled.problems] == [2, 4, 6]
    assert [metric.name for metric in compiled.metrics] == ["b", "d"]


def test_the_rest_of_a_wrong_statement_ends_at_its_end_not_at_a_text_like_it() -> None:
    assert len(problems('a = from(Service.*)cpm().filter(name == ";") x; disable(log);')) == 1


def test_a_metric_defined_in_two_files_is_a_mistake_of_the_second() -> None:
    text = "a = from(Service.*).cpm();"
    (problem,) = compile_texts([Text("one", text), Text("two", text)]).problems
    assert str(problem) == "two:1:1: 'a' is defined already, at one:1:1"


def test_a_list_of_problems_ends_with_how_many_more_there_are() -> None:
    compiled = compile_texts([Text("f", "a = x;\n" * (PROBLEMS_SHOWN_MAX + 7))])
    assert listed(compiled.problems).splitlines()[PROBLEMS_SHOWN_MAX:] == ["and 7 more"]


def test_a_text_too_long_is_not_read() -> None:
    assert problems(" " * (TEXT_CHARS_MAX + 1)) == [
        f"f:1:1: the file is longer than {TEXT_CHARS_MAX} characters; split it"
    ]


CORE = next(text.text for text in shipped() if text.file == "core.oal")[:2000]


@given(st.integers(0, len(CORE)), st.integers(0, 5), st.text('abc."()[]=;,*/<>!- \n1', max_size=4))
def test_whatever_is_written_is_planned_or_answered_within_the_text(
    at: int, cut: int, put: str
) -> None:
    text = CORE[:at] + put + CORE[at + cut :]
    lines = text.split("\n")
    for problem in compile_texts([Text("f", text)]).problems:
        assert 1 <= problem.place.line <= len(lines)
        assert 1 <= problem.place.column <= len(lines[problem.place.line - 1]) + 1
