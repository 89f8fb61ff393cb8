"""The satellite's plugins: kind → name in the configuration → constructor.

A constructor has a `config_type`, the frozen dataclass of its keys, and is called with a value of
it first: a server as `(config, registry, health)`, a client as `(config, producer, records_max,
registry)`, a fetcher as `(config, inlet, directory, clock, registry, health)`, a filter as
`(config)`. `satellite.contracts` says what they promise. Others join by the entry points
`skyfarer.server`, `skyfarer.client`, `skyfarer.fetcher` and `skyfarer.filter`.
"""

from __future__ import annotations

from skyfarer.base.plugins import Catalog, EntryPoints, installed_entry_points

_ROOM = "skyfarer.satellite"

ROWS = {
    "server": {
        "grpc-server": f"{_ROOM}.gatherers.grpc:GrpcGatherer",
        "http-server": f"{_ROOM}.gatherers.http:HttpGatherer",
    },
    "client": {
        "grpc-client": f"{_ROOM}.senders.grpc:GrpcForwarder",
        "kafka-client": f"{_ROOM}.senders.kafka:KafkaForwarder",
    },
    "fetcher": {
        "log-fetcher": f"{_ROOM}.fetchers.log.fetcher:LogFetcher",
        "prometheus-fetcher": f"{_ROOM}.fetchers.prometheus.fetcher:PrometheusFetcher",
    },
    "filter": {
        "sampler": f"{_ROOM}.processors.sampler:Sampler",
        "tag-editor": f"{_ROOM}.processors.tag_editor:TagEditor",
        "redactor": f"{_ROOM}.processors.redactor:Redactor",
        "dropper": f"{_ROOM}.processors.dropper:Dropper",
        "log-parser": f"{_ROOM}.processors.log_parser:LogParser",
        "log-converter": f"{_ROOM}.processors.log_converter:LogConverter",
        "meter-converter": f"{_ROOM}.processors.meter_converter:MeterConverter",
    },
}
# Package → the extra of this project that brings it.
EXTRAS = {"confluent_kafka": "kafka", "google": "filters", "re2": "filters"}


def catalog(entry_points: EntryPoints = installed_entry_points) -> Catalog:
    return Catalog(ROWS, EXTRAS, entry_points)
