from __future__ import annotations

from typing import Any

import pytest

from satellite.processors.passes import Pass, made
from skyfarer.base.errors import ConfigError
from skyfarer.satellite.processors.tag_editor import TagEditor
from skyfarer.testing.traces import database, segment
from skyfarer.wire.messages import InstanceProperties, KeyStringValuePair, log, meter
from skyfarer.wire.rpc import Kind


def pairs(tags: Any) -> dict[str, str]:
    return {tag.key: tag.value for tag in tags}


def logged(**tags: str) -> Any:
    data = [KeyStringValuePair(key=key, value=value) for key, value in tags.items()]
    return log.LogData(service="order", tags=log.LogTags(data=data))


def gauge(**labels: str) -> Any:
    made = [meter.Label(name=name, value=value) for name, value in labels.items()]
    return meter.MeterData(singleValue=meter.MeterSingleValue(name="g", labels=made, value=1))


def test_tags_of_every_span_are_set_renamed_and_removed() -> None:
    one = segment(
        "order", "i", "GET:/", 1, 2, exits=[database("db:1", "SELECT 1", 0, 1)], tags={"url": "/"}
    )
    editor = made(
        TagEditor, set={"env": "prod"}, rename={"db.statement": "sql"}, remove=["db.i*", "url"]
    )

    exit_span, root = Pass(editor).one(Kind.SEGMENT, one).spans

    assert pairs(exit_span.tags) == {"db.type": "PostgreSQL", "sql": "SELECT 1", "env": "prod"}
    assert pairs(root.tags) == {"env": "prod"}


def test_logs_are_edited_and_a_value_that_is_set_takes_the_place_of_the_old_one() -> None:
    editor = made(TagEditor, set={"level": "INFO", "env": "prod"})

    tags = Pass(editor).one(Kind.LOG, logged(level="DEBUG", thread="main")).tags.data

    assert [(tag.key, tag.value) for tag in tags] == [
        ("level", "INFO"),
        ("thread", "main"),
        ("env", "prod"),
    ]


def test_the_next_record_is_edited_like_the_first() -> None:
    editor = made(TagEditor, set={"level": "INFO"}, rename={"t": "thread"}, remove=["pass*"])
    passing, one = Pass(editor), logged(x="1", level="DEBUG", t="main", password="p")

    first, second = passing.one(Kind.LOG, one), passing.one(Kind.LOG, one)

    assert pairs(first.tags.data) == {"x": "1", "level": "INFO", "thread": "main"}
    assert first == second


def test_labels_of_meters_alone_and_in_collections_are_edited() -> None:
    editor = made(TagEditor, rename={"pod": "instance"}, set={"env": "prod"})
    collection = meter.MeterDataCollection(meterData=[gauge(pod="a"), gauge(pod="b")])

    alone = Pass(editor).one(Kind.METER, gauge(pod="a"))
    many = Pass(editor).one(Kind.METER_COLLECTION, collection).meterData

    for edited, pod in [(alone, "a"), (many[0], "a"), (many[1], "b")]:
        labels = {label.name: label.value for label in edited.singleValue.labels}
        assert labels == {"instance": pod, "env": "prod"}


def test_a_meter_without_a_value_is_left_alone() -> None:
    editor = made(TagEditor, set={"env": "prod"})

    assert Pass(editor).one(Kind.METER, meter.MeterData(service="s")).service == "s"


def test_only_the_records_that_are_named_are_edited() -> None:
    editor = made(TagEditor, set={"env": "prod"}, records=["properties"])
    properties = InstanceProperties(service="order")

    assert pairs(Pass(editor).one(Kind.INSTANCE_PROPERTIES, properties).properties) == {
        "env": "prod"
    }
    assert len(Pass(editor).one(Kind.LOG, logged()).tags.data) == 0


def test_a_record_in_which_nothing_changes_keeps_its_bytes() -> None:
    editor = made(TagEditor, set={"env": "prod"}, remove=["password"])
    same = logged(env="prod").SerializeToString()

    done = Pass(editor).of(Kind.LOG, [same])

    assert done.outgoing[0].payloads[0] is same


@pytest.mark.parametrize(
    "wrong", [{}, {"set": {"": "x"}}, {"records": ["traces"], "remove": ["a"]}]
)
def test_a_wrong_configuration_is_refused_at_start(wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=r"test\.yaml"):
        made(TagEditor, **wrong)
