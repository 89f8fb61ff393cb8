from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyfarer.base.errors import ConfigError
from skyfarer.telemetry import logs


@pytest.fixture(autouse=True)
def root_logger_restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def configured(level: str = "INFO", json: bool = False) -> io.StringIO:
    stream = io.StringIO()
    logs.configure("oap", level, json, stream)
    return stream


def test_an_event_is_one_line_of_keys_and_values() -> None:
    stream = configured()
    logging.getLogger("skyfarer.wire").info("listening on %d", 11800)

    assert re.fullmatch(
        r"time=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z level=INFO program=oap "
        r'logger=skyfarer\.wire message="listening on 11800"\n',
        stream.getvalue(),
    )


def test_json_lines_carry_the_same_keys() -> None:
    stream = configured(json=True)
    logging.getLogger("a").warning("x", extra={"fields": {"queue": "main", "level": "forged"}})
    event = json.loads(stream.getvalue())

    assert (event["level"], event["program"], event["logger"]) == ("WARNING", "oap", "a")
    assert (event["message"], event["queue"]) == ("x", "main")


def test_a_call_may_add_fields_of_its_own() -> None:
    stream = configured()
    logging.getLogger("a").info("x", extra={"fields": {"queue": "main", "why": "a b"}})

    assert stream.getvalue().endswith('message=x queue=main why="a b"\n')


def test_a_traceback_stays_on_the_line_of_its_event() -> None:
    stream = configured()
    try:
        raise RuntimeError("broken")
    except RuntimeError:
        logging.getLogger("a").exception("failed")

    assert stream.getvalue().count("\n") == 1
    assert "RuntimeError: broken" in stream.getvalue()


def test_events_below_the_level_are_left_out() -> None:
    stream = configured("warning")
    logging.getLogger("a").info("quiet")
    logging.getLogger("a").error("loud")

    assert "quiet" not in stream.getvalue()
    assert "loud" in stream.getvalue()


def test_configuring_again_replaces_and_does_not_double() -> None:
    configured()
    stream = configured()
    logging.getLogger("a").info("once")

    assert stream.getvalue().count("once") == 1


def test_an_unknown_level_is_one_sentence() -> None:
    with pytest.raises(ConfigError, match=r"there is no log level 'DEBGU'; did you mean 'DEBUG'\?"):
        logs.configure("oap", "DEBGU")


@given(st.text(), st.booleans())
def test_no_message_can_forge_a_second_event(message: str, as_json: bool) -> None:
    stream = configured(json=as_json)
    logging.getLogger("a").info("%s", message)

    line = stream.getvalue()
    assert line.endswith("\n")
    assert len(line.splitlines()) == 1
