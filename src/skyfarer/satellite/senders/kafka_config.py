"""What a user may say about the Kafka client, and what librdkafka makes of it.

Writes are idempotent and acknowledged by all replicas in sync; that is not for choosing. A record
is never given up by the library: it waits there, in memory that one batch bounds, until the broker
has it or refuses it, and the sender decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from skyfarer.base.units import KIB, MIB
from skyfarer.satellite.notation import address, seconds

LOOPBACK: Final = "127.0.0.1"
CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
BUFFER_BYTES_MAX: Final = 64 * MIB

# What the promises of this client rest on.
_FIXED: Final[Mapping[str, object]] = {
    "acks": "all",
    "enable.idempotence": True,
    "message.timeout.ms": 0,
    "partitioner": "murmur2_random",  # as Java's clients do: agents write the same keys
    "queue.buffering.max.kbytes": BUFFER_BYTES_MAX // KIB,
    "queue.buffering.max.messages": 100_000,
}
# A batch is handed over whole and then flushed: nobody waits for this long.
_USUAL: Final[Mapping[str, object]] = {
    "linger.ms": 100,
    "reconnect.backoff.ms": 100,
    "reconnect.backoff.max.ms": 5_000,
    "socket.keepalive.enable": True,
    "log_level": 0,
}


@dataclass(frozen=True)
class SaslConfig:
    """How brokers know us by a name and a password."""

    mechanism: Literal["", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = ""  # empty is none
    username: str = ""  # as the brokers know it
    password: str = ""  # PLAIN sends it readable, unless enable_tls is set


@dataclass(frozen=True)
class KafkaClientConfig:
    brokers: str = "127.0.0.1:9092"  # one that answers is enough; with commas between
    namespace: str = ""  # before each topic's name, with a hyphen
    client_id: str = "skyfarer-satellite"  # how brokers name it in their logs and quotas
    timeout: str = "20s"  # without all acknowledgements of a batch, the sender is told
    max_message_bytes: int = 1_000_000  # of a record; the broker has a limit as well
    compression_codec: int = 0  # 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd
    enable_tls: bool = False  # with brokers that speak it as well
    ca_pem_path: Path | None = None  # whom to believe; by default the machine's authorities
    client_pem_path: Path | None = None  # what we show to a broker that asks (mTLS)
    client_key_path: Path | None = None  # without a password
    insecure_skip_verify: bool = False  # true believes anyone
    sasl: SaslConfig = SaslConfig()
    properties: dict[str, str] = field(default_factory=dict)  # further settings of librdkafka

    def __post_init__(self) -> None:
        for broker in self.brokers.split(","):
            address(broker, LOOPBACK)
        if seconds(self.timeout) <= 0:
            raise ValueError("timeout must be above 0")
        if not 0 <= self.compression_codec < len(CODECS):
            raise ValueError(f"compression_codec must be from 0 to {len(CODECS) - 1}")
        if not KIB <= self.max_message_bytes <= BUFFER_BYTES_MAX:
            raise ValueError(f"max_message_bytes must be from {KIB} to {BUFFER_BYTES_MAX}")
        if (self.client_pem_path is None) != (self.client_key_path is None):
            raise ValueError("client_pem_path and client_key_path go together")
        fixed = sorted(_FIXED.keys() & self.properties.keys())
        if fixed:
            raise ValueError(f"properties: '{fixed[0]}' is not for changing")


def settings(config: KafkaClientConfig) -> dict[str, object]:
    """For librdkafka; its own words, checked by itself."""
    made = {
        **_USUAL,
        "bootstrap.servers": config.brokers,
        "client.id": config.client_id,
        "message.max.bytes": config.max_message_bytes,
        "compression.type": CODECS[config.compression_codec],
        "security.protocol": _protocol(config),
        **(_tls(config) if config.enable_tls else {}),
        **(_sasl(config.sasl) if config.sasl.mechanism else {}),
        **config.properties,
        **_FIXED,
    }
    return {name: value for name, value in made.items() if value is not None}


def _protocol(config: KafkaClientConfig) -> str:
    base = "SSL" if config.enable_tls else "PLAINTEXT"
    return f"SASL_{base}" if config.sasl.mechanism else base


def _tls(config: KafkaClientConfig) -> dict[str, object]:
    return {
        "ssl.ca.location": str(config.ca_pem_path) if config.ca_pem_path else None,
        "ssl.certificate.location": str(config.client_pem_path) if config.client_pem_path else None,
        "ssl.key.location": str(config.client_key_path) if config.client_key_path else None,
        "enable.ssl.certificate.verification": not config.insecure_skip_verify,
    }


def _sasl(config: SaslConfig) -> dict[str, object]:
    return {
        "sasl.mechanism": config.mechanism,
        "sasl.username": config.username,
        "sasl.password": config.password,
    }
