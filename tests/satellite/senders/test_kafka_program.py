"""The whole satellite before a real Kafka: what agents were told is kept arrives."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from skyfarer.testing.programs import Program, eventually, free_port
from skyfarer.testing.traces import segment
from third_parties.kafka import Broker

COLLECT = "/skywalking.v3.TraceSegmentReportService/collect"
TOPIC = "program-skywalking-segments"
WAIT_S = 120.0
CONFIG = """
data_directory: {directory}/data
telemetry: {{export_type: none}}
sharing:
  clients:
    - {{plugin_name: kafka-client, brokers: "{brokers}", namespace: program, timeout: 1s}}
  servers:
    - {{plugin_name: grpc-server, address: "127.0.0.1:{port}"}}
pipes:
  - common_config: {{pipe_name: native}}
    gatherer: {{server_name: grpc-server, receiver: {{plugin_name: grpc-native-receiver}}}}
    sender: {{client_name: kafka-client, flush_time: 20, retry: {{maximum: 200ms}}}}
"""


class Satellite:
    def __init__(self, directory: Path, broker: Broker) -> None:
        self.port = free_port()
        file = directory / "satellite.yaml"
        file.write_text(CONFIG.format(directory=directory, brokers=broker.address, port=self.port))
        command = ["satellite", "start", "--config", str(file)]
        self.program = Program(command, {}, directory / "satellite.log")

    def collect(self, payloads: list[bytes]) -> None:
        with grpc.insecure_channel(f"127.0.0.1:{self.port}") as channel:
            channel.stream_unary(COLLECT)(iter(payloads), timeout=WAIT_S)


@pytest.fixture
def satellite(tmp_path: Path, broker: Broker) -> Iterator[Satellite]:
    made = Satellite(tmp_path, broker)
    made.program.start()
    yield made
    broker.resume()
    made.program.kill()


def test_what_agents_sent_is_in_kafka_after_a_broker_was_away_and_the_satellite_was_killed(
    satellite: Satellite, broker: Broker
) -> None:
    sent = [
        segment("order", "order-1", "GET:/", 1_700_000_000_000 + number, 10).SerializeToString()
        for number in range(120)
    ]
    satellite.collect(sent[:40])
    eventually(lambda: len(broker.read(TOPIC)) == 40, WAIT_S, "40 records are in Kafka")
    broker.pause()
    satellite.collect(sent[40:80])
    satellite.program.kill()
    broker.resume()
    satellite.program.start()
    satellite.collect(sent[80:])

    def distinct() -> set[bytes]:
        return {message.value() or b"" for message in broker.read(TOPIC)}

    eventually(lambda: distinct() == set(sent), WAIT_S, "all 120 records are in Kafka")
    assert satellite.program.stop() == 0
    numbers = {}
    for message in broker.read(TOPIC):
        headers = dict(message.headers() or ())
        number = int(headers["skyfarer-first-sequence"]) + int(headers["skyfarer-sequences"])
        numbers[number] = message.value()
    assert [numbers[number] for number in sorted(numbers)] == sent
