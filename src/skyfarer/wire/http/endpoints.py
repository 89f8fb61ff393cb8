"""What can be posted to the HTTP server: path → what its body is, and what record it becomes.

The records are those of the RPC table: whoever reads a queue cannot tell how they came. But for
those of other projects, which have no call: their records are the bodies, as they came.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from skyfarer.wire.rpc import Kind


class Dialect(Enum):
    """What a body is, and so in which form it is answered."""

    OBJECT = "object"  # one message as proto3 JSON; answered as the OAP does, by no commands
    ARRAY = "array"  # a JSON array of them
    LOGGING = "logging"  # one message as protobuf; answered by a status and a word about it
    OTLP = "otlp"  # one export request as protobuf; answered by OTLP's own messages
    TELEGRAF = "telegraf"  # JSON of Telegraf's HTTP output; answered as the OAP does
    ZIPKIN = "zipkin"  # a list of spans, in one of Zipkin's forms; answered 202, as Zipkin does
    V2 = "v2"  # JSON of SkyWalking 7; answered as the OAP does, or by what the call is answered
    FIREHOSE = "firehose"  # a delivery of Amazon Data Firehose; answered by its number


PROTOBUF: Final = "application/x-protobuf"
THRIFT: Final = "application/x-thrift"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """`kind` NONE: it is asked, and nothing of it is kept here. `kinds`: what the record is if its
    body has that type, and not the usual one."""

    path: str
    kind: Kind
    dialect: Dialect
    kinds: Mapping[str, Kind] = field(default_factory=dict)

    def kind_of(self, content_type: str) -> Kind:
        return self.kinds.get(content_type, self.kind)


ENDPOINTS: Final[Mapping[str, Endpoint]] = {
    one.path: one
    for one in (
        Endpoint("/v3/segment", Kind.SEGMENT, Dialect.OBJECT),
        Endpoint("/v3/segments", Kind.SEGMENT, Dialect.ARRAY),
        Endpoint("/v3/management/reportProperties", Kind.INSTANCE_PROPERTIES, Dialect.OBJECT),
        Endpoint("/v3/management/keepAlive", Kind.INSTANCE_PING, Dialect.OBJECT),
        Endpoint("/v3/logs", Kind.LOG, Dialect.ARRAY),
        Endpoint("/v3/events", Kind.EVENT, Dialect.ARRAY),
        Endpoint("/browser/perfData", Kind.BROWSER_PAGE, Dialect.OBJECT),
        Endpoint("/browser/perfData/webVitals", Kind.BROWSER_WEB_VITALS, Dialect.OBJECT),
        Endpoint("/browser/perfData/resources", Kind.BROWSER_RESOURCE, Dialect.ARRAY),
        Endpoint("/browser/perfData/webInteractions", Kind.BROWSER_INTERACTION, Dialect.ARRAY),
        Endpoint("/browser/errorLog", Kind.BROWSER_ERROR, Dialect.OBJECT),
        Endpoint("/browser/errorLogs", Kind.BROWSER_ERROR, Dialect.ARRAY),
        Endpoint("/logging", Kind.LOG, Dialect.LOGGING),
        Endpoint("/v1/traces", Kind.OTLP_TRACES, Dialect.OTLP),
        Endpoint("/v1/metrics", Kind.OTLP_METRICS, Dialect.OTLP),
        Endpoint("/v1/logs", Kind.OTLP_LOGS, Dialect.OTLP),
        Endpoint("/v2/segments", Kind.V2_SEGMENT, Dialect.V2),
        Endpoint("/v2/service/register", Kind.NONE, Dialect.V2),
        Endpoint("/v2/instance/register", Kind.NONE, Dialect.V2),
        Endpoint("/v2/instance/heartbeat", Kind.NONE, Dialect.V2),
        Endpoint("/telegraf", Kind.TELEGRAF, Dialect.TELEGRAF),
        Endpoint(
            *("/api/v2/spans", Kind.ZIPKIN_V2_JSON, Dialect.ZIPKIN),
            {PROTOBUF: Kind.ZIPKIN_V2_PROTO},
        ),
        Endpoint(
            *("/api/v1/spans", Kind.ZIPKIN_V1_JSON, Dialect.ZIPKIN),
            {THRIFT: Kind.ZIPKIN_V1_THRIFT},
        ),
        Endpoint("/aws/firehose/metrics", Kind.FIREHOSE_METRICS, Dialect.FIREHOSE),
    )
}
