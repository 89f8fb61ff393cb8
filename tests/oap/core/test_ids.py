from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyfarer.oap.core import ids, time_bucket
from skyfarer.oap.core.layers import Layer, layer_named

NAMES = st.text().filter(lambda name: any(letter > " " for letter in name))


def test_ids_equal_the_originals_check_vectors() -> None:
    assert ids.service_id("User", normal=False) == "VXNlcg==.0"
    assert ids.service_id("e2e-test-dest-service") == "ZTJlLXRlc3QtZGVzdC1zZXJ2aWNl.1"
    assert ids.endpoint_id("c.1", "POST:/users") == "c.1_UE9TVDovdXNlcnM="
    assert ids.relation_id("VXNlcg==.0", "c.1") == "VXNlcg==.0-c.1"
    relation = ids.endpoint_relation_id("u.0", "User", "c.1", "POST:/users")
    assert relation == "u.0-VXNlcg==-c.1-UE9TVDovdXNlcnM="


@pytest.mark.parametrize("name", ["", "  ", "\t\n", "\x00", "\x01\x1c \x1f"])
def test_a_blank_name_is_written_as_blank(name: str) -> None:
    assert ids.service_id(name) == ids.service_id("_blank")


@pytest.mark.parametrize("name", ["\u3000", "\xa0", "\x85", "\x7f", " \u2003", "\x00a", "é"])
def test_a_name_with_anything_but_spaces_and_controls_is_none_that_is_blank(name: str) -> None:
    assert ids.decode_service_id(ids.service_id(name)) == (name, True)


@given(NAMES, st.booleans(), NAMES)
def test_an_id_gives_its_names_back(service: str, normal: bool, part: str) -> None:
    identifier = ids.service_id(service, normal)
    assert ids.decode_service_id(identifier) == (service, normal)
    assert ids.decode_part_id(ids.instance_id(identifier, part)) == (identifier, part)


@pytest.mark.parametrize("text", ["", "x", "VXNlcg==", "VXNlcg==.2", "%%.1", "/w==.1"])
def test_a_text_that_is_no_service_id_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not"):
        ids.decode_service_id(text)


def test_a_text_without_a_part_is_no_instance_id() -> None:
    with pytest.raises(ValueError, match="not an instance or endpoint id"):
        ids.decode_part_id("VXNlcg==.0")


@given(st.datetimes(datetime(1990, 1, 1), datetime(2090, 1, 1)))
def test_a_bucket_reads_as_its_local_time(at: datetime) -> None:
    zone = ZoneInfo("Asia/Kolkata")
    epoch_ms = int(at.replace(tzinfo=UTC).timestamp() * 1000)
    local = datetime.fromtimestamp(epoch_ms / 1000, zone)
    minute = time_bucket.minute_bucket(epoch_ms, zone)
    assert str(minute) == local.strftime("%Y%m%d%H%M")
    assert str(time_bucket.hour_of(minute)) == local.strftime("%Y%m%d%H")
    assert str(time_bucket.day_of(minute)) == local.strftime("%Y%m%d")
    assert time_bucket.epoch_ms(minute, zone) == epoch_ms // 60_000 * 60_000


def test_days_between_counts_a_leap_day() -> None:
    assert time_bucket.days_between(20280228, 20280301) == [20280228, 20280229, 20280301]
    assert time_bucket.days_between(20261231, 20270101) == [20261231, 20270101]
    assert time_bucket.days_between(20270101, 20261231) == []


def test_an_unknown_layer_is_undefined_and_conjectured_ones_are_not_normal() -> None:
    assert layer_named("NOBODY") is Layer.UNDEFINED
    assert layer_named("GENERAL").value == 2
    assert {layer.name for layer in Layer if not layer.normal} == {
        *("UNDEFINED", "VIRTUAL_DATABASE", "VIRTUAL_MQ", "VIRTUAL_GATEWAY"),
        *("VIRTUAL_CACHE", "VIRTUAL_GENAI"),
    }
