from __future__ import annotations

import pytest

from skyfarer.base.errors import ConfigError
from skyfarer.satellite.plugins import Plugin
from skyfarer.satellite.receivers import (
    GRPC_RECEIVERS,
    HTTP_RECEIVERS,
    Paths,
    check_forwarder,
    paths,
)
from skyfarer.wire.rpc import RPCS, Handling

EVERY = ("grpc-native-receiver", "grpc-envoy-receiver", "grpc-otlp-receiver")


def of(name: str, server: str = "grpc-server", **values: object) -> Paths:
    return paths(Plugin(name, values, "mine.yaml: here"), server)


def test_the_three_whole_receivers_share_out_every_call_an_agent_can_make() -> None:
    kept = [path for name in EVERY for path in of(name).kept]
    asked = [path for name in EVERY for path in of(name).asked]

    assert sorted(kept) == sorted(r.path for r in RPCS if r.handling is Handling.KEEP)
    assert sorted(asked) == sorted(r.path for r in RPCS if r.handling is Handling.ASK)


def test_the_single_receivers_share_out_what_a_whole_one_takes() -> None:
    for whole in EVERY:
        prefix = whole.removesuffix("receiver")
        single = [name for name in GRPC_RECEIVERS if name.startswith(prefix) and name != whole]
        taken = [path for name in single for path in (*of(name).kept, *of(name).asked)]
        assert sorted(taken) == sorted((*of(whole).kept, *of(whole).asked)), whole


@pytest.mark.parametrize("name", GRPC_RECEIVERS)
def test_no_receiver_is_without_a_call(name: str) -> None:
    assert of(name) != Paths(())


def test_older_names_of_a_service_belong_to_its_receiver() -> None:
    kept = of("grpc-native-tracing-receiver").kept

    assert "/skywalking.v3.TraceSegmentReportService/collect" in kept
    assert "/TraceSegmentReportService/collect" in kept
    assert "/skywalking.v3.LogReportService/collect" not in kept


def test_services_of_one_name_and_different_packages_are_told_apart() -> None:
    assert of("grpc-envoy-metrics-v3-receiver").kept == (
        "/envoy.service.metrics.v3.MetricsService/StreamMetrics",
    )
    assert of("grpc-otlp-metrics-v1-receiver").kept == (
        "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
    )


def test_what_waits_for_an_answer_is_asked_and_not_kept() -> None:
    profile = of("grpc-native-profile-receiver")

    assert "/skywalking.v3.ProfileTask/getProfileTaskCommands" in profile.asked
    assert "/skywalking.v3.ProfileTask/collectSnapshot" in profile.kept


@pytest.mark.parametrize("name", HTTP_RECEIVERS)
def test_http_receivers_have_paths_of_their_own(name: str) -> None:
    found = of(name, "http-server")

    assert found.kept == HTTP_RECEIVERS[name]
    assert found.asked == ()


@pytest.mark.parametrize(
    ("name", "server", "values", "says"),
    [
        ("grpc-native-receiver", "http-server", {}, "needs a server that is a grpc-server"),
        ("http-otlp-receiver", "grpc-server", {}, "needs a server that is a http-server"),
        ("http-otpl-receiver", "http-server", {}, "did you mean 'http-otlp-receiver'"),
        ("grpc-native-receiver", "grpc-server", {"x": 1}, "has no key 'x'"),
    ],
)
def test_what_does_not_fit_is_one_sentence(
    name: str, server: str, values: dict[str, object], says: str
) -> None:
    with pytest.raises(ConfigError, match=says):
        of(name, server, **values)


@pytest.mark.parametrize(
    ("forwarder", "receivers", "fits"),
    [
        ("native-log-grpc-forwarder", ("grpc-native-log-receiver",), True),
        ("native-log-kafka-forwarder", ("grpc-native-log-receiver",), True),
        ("native-log-grpc-forwarder", ("grpc-native-receiver",), True),
        ("native-log-grpc-forwarder", ("http-native-log-receiver",), True),
        ("native-log-grpc-forwarder", ("grpc-native-jvm-receiver",), False),
        ("native-log-grpc-forwarder", (), True),
        (
            "native-log-grpc-forwarder",
            ("grpc-native-jvm-receiver", "grpc-native-log-receiver"),
            True,
        ),
    ],
)
def test_a_forwarder_must_be_able_to_send_some_of_what_is_taken_in(
    forwarder: str, receivers: tuple[str, ...], fits: bool
) -> None:
    if fits:
        check_forwarder(forwarder, receivers, "here")
    else:
        with pytest.raises(ConfigError, match="cannot send what grpc-native-jvm-receiver takes in"):
            check_forwarder(forwarder, receivers, "here")
