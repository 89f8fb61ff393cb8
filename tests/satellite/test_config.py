from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from skyfarer.base.clock import SystemClock
from skyfarer.base.errors import ConfigError
from skyfarer.base.units import MIB
from skyfarer.satellite.app import Satellite
from skyfarer.satellite.config import DEFAULT_FILE, load

HOME = {"HOME": "/home/agent"}


def edited(directory: Path, old: str, new: str) -> Path:
    text = DEFAULT_FILE.read_text()
    assert old in text
    file = directory / "mine.yaml"
    file.write_text(text.replace(old, new))
    return file


def test_the_shipped_file_alone_is_a_whole_configuration() -> None:
    config = load(None, HOME)

    (pipe,) = config.pipes
    queue = pipe.gatherer.queue
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

    (pipe,) = Satellite(config, SystemClock(), Random(1)).pipes
    assert pipe.forwarder.address == ("oap.example", 11800)
    assert pipe.gatherer.address == ("0.0.0.0", 11800)
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
        ("filters: []", "filters: [sampler]", "there is no filter named 'sampler'"),
        ("plugin_name: mmap-queue", "plugin_name: memory-queue", "plugin_name is 'memory-queue'"),
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
        ({"SATELLITE_GRPC_AUTHENTICATION": "a\nb"}, "authentication must be printable ASCII"),
        ({"SKYFARER_SATELLITE_QUEUE_SEGMENT_BYTES": "1"}, "segment_bytes must be"),
        ({"SATELLITE_GRPC_TIMEOUT_STREAM": "0s"}, "timeout must be above 0"),
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

    assert "there is no gatherer named 'grpc-serwer'; did you mean 'grpc-server'?" in str(
        refused.value
    )


def test_two_pipes_cannot_share_a_server(tmp_path: Path) -> None:
    text = DEFAULT_FILE.read_text()
    pipe = text[text.index("  - common_config:") :]
    file = tmp_path / "mine.yaml"
    file.write_text(text + pipe.replace("pipe_name: native", "pipe_name: second"))

    with pytest.raises(ConfigError, match="serves another pipe"):
        load(file, HOME)
