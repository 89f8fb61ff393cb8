from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from skyfarer.base.clock import SystemClock
from skyfarer.base.errors import ConfigError
from skyfarer.base.units import MIB
from skyfarer.satellite.app import Satellite
from skyfarer.satellite.config import DEFAULT_FILE, GENERAL, load
from skyfarer.satellite.sections import QueueConfig

HOME = {"HOME": "/home/agent"}


def edited(directory: Path, old: str, new: str) -> Path:
    text = DEFAULT_FILE.read_text()
    assert old in text
    file = directory / "mine.yaml"
    file.write_text(text.replace(old, new))
    return file


def test_the_shipped_file_alone_is_a_whole_configuration() -> None:
    config = load(None, HOME)

    pipe = config.pipes[0]
    queue = pipe.queue
    assert isinstance(queue, QueueConfig)
    assert config.data_directory == Path("/home/agent/.local/state/skyfarer/satellite")
    assert (queue.segment_bytes, queue.capacity_bytes) == (4 * MIB, 512 * MIB)
    assert queue.when_full == "drop_oldest"
    assert config.shutdown_hook_s == 5.0
    assert Satellite(config, SystemClock(), Random(1)).pipes[0].forwarder.address == (
        "127.0.0.1",
        11800,
    )


def test_environment_variables_of_the_original_are_heard() -> None:
    config = load(
        None,
        {
            **HOME,
            "SATELLITE_GRPC_CLIENT": "oap.example:11800",
            "SATELLITE_GRPC_ADDRESS": ":11800",
            "SATELLITE_LOGGER_LEVEL": "debug",
            "SATELLITE_SHUTDOWN_HOOK_TIME": "30",
            "SATELLITE_TRACINGPIPE_SENDER_MAX_BUFFER_SIZE": "7",
            "SKYFARER_SATELLITE_DATA_DIR": "/var/lib/skyfarer",
        },
    )

    satellite = Satellite(config, SystemClock(), Random(1))
    assert satellite.pipes[0].forwarder.address == ("oap.example", 11800)
    assert satellite.address("grpc-server") == ("0.0.0.0", 11800)
    assert config.logger.level == "debug"
    assert config.shutdown_hook_s == 30.0
    assert config.pipes[0].sender.max_buffer_size == 7
    assert config.data_directory == Path("/var/lib/skyfarer")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("logger:", "loger:", "mine.yaml has no key 'loger'; did you mean 'logger'?"),
        ("  level:", "  levle:", "mine.yaml: logger has no key 'levle'; did you mean 'level'?"),
        (
            "      flush_time:",
            "      flush_tiem:",
            "mine.yaml: pipes[0].sender has no key 'flush_tiem'; did you mean 'flush_time'?",
        ),
        (
            "      server_addr:",
            "      server_adr:",
            "mine.yaml: sharing.clients[0] has no key 'server_adr'; did you mean 'server_addr'?",
        ),
        ("  servers:", "  server:", "sharing has no key 'server'; did you mean 'servers'?"),
        (
            "- plugin_name: grpc-client",
            "- plugin_name: grpc-clinet",
            "pipes[0].sender.client_name is 'grpc-client'; did you mean 'grpc-clinet'?",
        ),
        (
            "filters: []",
            "filters: [{plugin_name: smapler}]",
            "there is no filter named 'smapler'; did you mean 'sampler'?",
        ),
        ("filters: []", "filters: [sampler]", "must hold keys and values, not 'sampler'"),
        (
            "plugin_name: mmap-queue",
            "plugin_name: map-queue",
            "there is no queue named 'map-queue'; did you mean 'mmap-queue'?",
        ),
        (
            "- plugin_name: grpc-native-receiver",
            "- plugin_name: grpc-natve-receiver",
            "no receiver named 'grpc-natve-receiver'; did you mean 'grpc-native-receiver'?",
        ),
        (
            "      receivers:",
            "      recievers:",
            "pipes[0].gatherer has no key 'recievers'; did you mean 'receivers'?",
        ),
        (
            "- plugin_name: grpc-native-receiver",
            "- {plugin_name: grpc-native-receiver, uri: /x}",
            "pipes[0].gatherer.receivers[0] has no key 'uri'",
        ),
        ("pipe_name: native", "pipe_name: ../etc", "must be letters, digits, - and _"),
        ("WHEN_FULL:drop_oldest", "WHEN_FULL:forget", "when_full is 'forget'"),
        ("FLUSH_TIME:200", "FLUSH_TIME:soon", "flush_time must be a whole number, not 'soon'"),
        ("RETRY_INITIAL:100ms", "RETRY_INITIAL:1h", "initial must be above 0 and at most maximum"),
        ("HOOK_TIME:5s", "HOOK_TIME:later", "'later' is no duration such as 200ms, 5s or 1m"),
    ],
)
def test_a_mistake_in_the_file_is_one_sentence_that_names_it(
    tmp_path: Path, old: str, new: str, says: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        Satellite(load(edited(tmp_path, old, new), HOME), SystemClock(), Random(1))

    assert says in str(refused.value)
    assert str(refused.value).startswith("mine.yaml")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("environ", "says"),
    [
        ({"SATELLITE_GRPC_CLIENT": "oap"}, "'oap' is no address such as 127.0.0.1:11800"),
        ({"SATELLITE_GRPC_CLIENT": "oap:99999"}, "'oap:99999' is no address"),
        ({"SATELLITE_GRPC_ADDRESS": "127.0.0.1:11800"}, "which is the satellite's own address"),
        ({"SATELLITE_GRPC_AUTHENTICATION": "a\nb"}, "must be printable ASCII"),
        ({"SKYFARER_SATELLITE_QUEUE_SEGMENT_BYTES": "1"}, "segment_bytes must be"),
        ({"SATELLITE_GRPC_TIMEOUT_STREAM": "0s"}, "timeouts must be above 0"),
    ],
)
def test_a_mistake_in_the_environment_is_one_sentence_before_anything_starts(
    environ: dict[str, str], says: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        Satellite(load(None, {**HOME, **environ}), SystemClock(), Random(1))

    assert says in str(refused.value)


def test_an_unknown_plugin_is_named_with_the_nearest_one(tmp_path: Path) -> None:
    text = DEFAULT_FILE.read_text().replace("grpc-server", "grpc-serwer")
    file = tmp_path / "mine.yaml"
    file.write_text(text)

    with pytest.raises(ConfigError) as refused:
        Satellite(load(file, HOME), SystemClock(), Random(1))

    assert "there is no server named 'grpc-serwer'; did you mean 'grpc-server'?" in str(
        refused.value
    )


def test_what_the_shipped_file_says_at_its_top_holds_for_a_file_that_does_not_say_it() -> None:
    text = DEFAULT_FILE.read_text()

    assert all(f"\n{key}: {default}\n" in text for key, default in GENERAL.items())


MINIMAL = """
sharing:
  clients: [{plugin_name: grpc-client}]
  servers: [{plugin_name: grpc-server}]
pipes:
"""


def pipe(name: str, receiver: str, more: str = "") -> str:
    return f"""
  - common_config: {{pipe_name: {name}}}
    gatherer: {{server_name: grpc-server, receiver: {{plugin_name: {receiver}}}{more}}}
    sender: {{client_name: grpc-client}}
"""


def built(directory: Path, text: str) -> Satellite:
    file = directory / "mine.yaml"
    file.write_text(text)
    return Satellite(load(file, HOME), SystemClock(), Random(1))


def refusal(directory: Path, text: str) -> str:
    with pytest.raises(ConfigError) as refused:
        built(directory, text)
    return str(refused.value)


def test_pipes_share_a_server_each_with_paths_of_its_own(tmp_path: Path) -> None:
    traces = pipe("traces", "grpc-native-tracing-receiver")
    logs = pipe("logs", "grpc-native-log-receiver")

    satellite = built(tmp_path, MINIMAL + traces + logs)

    assert [one.name for one in satellite.pipes] == ["traces", "logs"]


def test_two_pipes_that_claim_one_path_are_refused_by_name(tmp_path: Path) -> None:
    everything = pipe("everything", "grpc-native-receiver")
    logs = pipe("logs", "grpc-native-log-receiver")

    said = refusal(tmp_path, MINIMAL + everything + logs)

    assert said == (
        "mine.yaml: pipes[1].gatherer.receiver: /skywalking.v3.LogReportService/collect of server"
        " 'grpc-server' belongs to pipe 'everything' already, so 'logs' cannot have it"
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            pipe("a", "grpc-native-log-receiver") * 2,
            "mine.yaml: pipes[1].common_config.pipe_name 'a' is taken already",
        ),
        (
            pipe("a", "grpc-native-log-receiver", ", queue: {plugin_name: none-queue}"),
            "none-queue keeps nothing, and grpc-native-log-receiver takes in what must be kept",
        ),
        (
            pipe("a", "grpc-native-log-receiver", ", fetcher: {plugin_name: log-fetcher}"),
            "pipes[0].gatherer needs a receiver or a fetcher, and not both",
        ),
        (
            pipe("a", "grpc-native-log-receiver").replace("server_name: grpc-server, ", ""),
            "pipes[0].gatherer.server_name is ''; there are: grpc-server",
        ),
        (
            pipe("a", "grpc-native-log-receiver").replace(
                "{client_name: grpc-client}",
                "{client_name: grpc-client, forwarders:"
                " [{plugin_name: native-tracing-grpc-forwarder}]}",
            ),
            "native-tracing-grpc-forwarder, which cannot send what grpc-native-log-receiver takes",
        ),
    ],
)
def test_parts_that_do_not_belong_together_are_refused(
    tmp_path: Path, text: str, says: str
) -> None:
    said = refusal(tmp_path, MINIMAL + text)

    assert says in said
    assert said.startswith("mine.yaml: pipes[")


def test_a_pipe_that_only_asks_needs_a_client_that_answers(tmp_path: Path) -> None:
    asks = pipe("asks", "grpc-native-cds-receiver", ", queue: {plugin_name: none-queue}")
    text = MINIMAL.replace("clients: [", "clients: [{plugin_name: kafka-client}, ")

    said = refusal(tmp_path, text + asks.replace("grpc-client}", "kafka-client}"))

    assert "kafka-client answers no calls, and grpc-native-cds-receiver has nothing else" in said


def test_a_pipe_without_a_queue_may_only_ask_its_upstream(tmp_path: Path) -> None:
    asks = pipe("asks", "grpc-native-cds-receiver", ", queue: {plugin_name: none-queue}")

    (made,) = built(tmp_path, MINIMAL + asks).pipes

    assert made.queued is None


def test_two_servers_of_one_plugin_are_told_apart_by_their_names(tmp_path: Path) -> None:
    servers = "[{plugin_name: grpc-server}, {plugin_name: grpc-server, address: 127.0.0.1:4317}]"
    text = MINIMAL.replace("[{plugin_name: grpc-server}]", servers)
    pipes = pipe("logs", "grpc-native-log-receiver")

    assert "names 'grpc-server' twice" in refusal(tmp_path, text + pipes)
    named = text.replace("address: 127.0.0.1:4317", "name: second, address: 127.0.0.1:4317")
    assert built(tmp_path, named + pipes).address("second") == ("127.0.0.1", 4317)


def test_a_server_without_an_address_is_off(tmp_path: Path) -> None:
    text = MINIMAL.replace("grpc-server}", "grpc-server, address: ''}")

    satellite = built(tmp_path, text + pipe("logs", "grpc-native-log-receiver"))

    with pytest.raises(KeyError):
        satellite.address("grpc-server")


@pytest.mark.parametrize(
    ("values", "tls"),
    [
        ("enable_tls: true", True),
        ("enable_tls: false", False),
        ("server_addr: 'oap:11800'", False),
        ("enable_tls: ''", False),
    ],
)
def test_only_a_configuration_that_asks_for_tls_needs_it(
    tmp_path: Path, values: str, tls: bool
) -> None:
    file = tmp_path / "mine.yaml"
    text = MINIMAL.replace("grpc-client}", f"grpc-client, {values}}}")
    file.write_text(text + pipe("logs", "grpc-native-log-receiver"))

    assert load(file, HOME).speaks_tls is tls
