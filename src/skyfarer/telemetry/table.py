"""Every self-metric of both programs, in one table.

Names are the wire's: dashboards and alarms are written against them, so a name is changed only with
a line in the changelog. Those of the satellite's design document keep its spelling, without
`_total`. The ledger of a queue is four of these: accepted = delivered + queued + dropped.
`rpc` is a method's path, `reason` one word of the code that counts, `process` what tells the
processes of one program apart.
"""

from __future__ import annotations

from typing import Final

from skyfarer.telemetry.metrics import OBSERVE_FAILURES as OBSERVE_FAILURES
from skyfarer.telemetry.metrics import SERIES_OVERFLOW as SERIES_OVERFLOW
from skyfarer.telemetry.metrics import Kind, Metric

# Receivers: agents → queue.
RECEIVER_CONNECTIONS: Final = Metric(
    "receiver_connections", Kind.GAUGE, "Open connections of agents."
)
RECEIVER_CONNECTIONS_REFUSED: Final = Metric(
    "receiver_connections_refused_total", Kind.COUNTER, "Connections closed by us.", ("reason",)
)
RECEIVER_CALLS: Final = Metric(
    "receiver_calls_total",
    Kind.COUNTER,
    "Calls ended, by method and gRPC status name.",
    ("rpc", "status"),
)
RECEIVER_MESSAGES: Final = Metric(
    "receiver_messages_total", Kind.COUNTER, "Messages appended to the queue.", ("rpc",)
)
RECEIVER_BYTES: Final = Metric(
    "receiver_bytes_total", Kind.COUNTER, "Bytes of messages received, before inflating."
)

# Queues. Counted from the queue's own files, so the counts survive a crash; several add up.
QUEUE_ACCEPTED: Final = Metric("queue_accepted_total", Kind.COUNTER, "Records ever appended.")
QUEUE_DELIVERED: Final = Metric(
    "queue_delivered_total", Kind.COUNTER, "Records taken over by the consumer."
)
QUEUE_QUEUED: Final = Metric(
    "queue_queued_records", Kind.GAUGE, "Records appended and not yet taken over."
)
QUEUE_DROPPED: Final = Metric("queue_dropped_total", Kind.COUNTER, "Records given up.", ("reason",))
QUEUE_REJECTED: Final = Metric(
    "queue_rejected_total", Kind.COUNTER, "Records refused, and so never accepted.", ("reason",)
)
QUEUE_CAPACITY_SECONDS: Final = Metric(
    "queue_capacity_seconds",
    Kind.GAUGE,
    "How long the whole queue lasts at the current rate; +Inf while nothing is written.",
    ("queue",),
)
QUEUE_FREE_SECONDS: Final = Metric(
    "queue_free_seconds",
    Kind.GAUGE,
    "How long what is free of it lasts at the current rate; 0 when it is full.",
    ("queue",),
)
QUEUE_DAMAGED: Final = Metric(
    "queue_damaged_total", Kind.COUNTER, "Records whose checksum failed when read."
)

# The satellite's design document.
GATHERER_WRITING_OFFSET: Final = Metric(
    "gatherer_writing_offset", Kind.GAUGE, "Sequence the next record will get.", ("pipe",)
)
GATHERER_WATERMARK_OFFSET: Final = Metric(
    "gatherer_watermark_offset", Kind.GAUGE, "Sequence up to which records are durable.", ("pipe",)
)
PROCESSOR_READING_COUNT: Final = Metric(
    "processor_reading_count", Kind.COUNTER, "Records read from the queue.", ("pipe",)
)
SENDER_COMMITTED_OFFSET: Final = Metric(
    "sender_committed_offset",
    Kind.GAUGE,
    "Sequence up to which the backend has acknowledged.",
    ("pipe",),
)
SENDER_ABANDONED_COUNT: Final = Metric(
    "sender_abandoned_count", Kind.COUNTER, "Records given up by the sender.", ("pipe", "reason")
)
SENDER_RETRY_COUNT: Final = Metric(
    "sender_retry_count", Kind.COUNTER, "Batches tried again.", ("pipe",)
)

# Senders: queue → backend.
SENDER_CALLS: Final = Metric(
    "sender_calls_total",
    Kind.COUNTER,
    "Calls made, by method and gRPC status name.",
    ("rpc", "status"),
)
SENDER_BYTES: Final = Metric("sender_bytes_total", Kind.COUNTER, "Message bytes sent.")
SENDER_RECORDS: Final = Metric(
    "sender_records_total", Kind.COUNTER, "Records acknowledged by the backend.", ("pipe",)
)

# The Spark pipeline: queue → storage.
PIPELINE_BATCHES: Final = Metric("pipeline_batches_total", Kind.COUNTER, "Micro-batches stored.")
PIPELINE_RECORDS: Final = Metric(
    "pipeline_records_total", Kind.COUNTER, "Queue records handled.", ("outcome",)
)
PIPELINE_PARKED: Final = Metric(
    "pipeline_parked_total", Kind.COUNTER, "Records set aside as unreadable.", ("reason",)
)
PIPELINE_BATCH_SECONDS: Final = Metric(
    "pipeline_batch_seconds", Kind.GAUGE, "Duration of the last micro-batch."
)
PIPELINE_BATCH_RECORDS: Final = Metric(
    "pipeline_batch_records", Kind.GAUGE, "Queue records in the last micro-batch."
)
PIPELINE_LAG_RECORDS: Final = Metric(
    "pipeline_lag_records", Kind.GAUGE, "Records accepted and not yet in storage."
)
PIPELINE_RESTARTS: Final = Metric(
    "pipeline_restarts_total", Kind.COUNTER, "Times the streaming query was started again."
)

# Query.
QUERY_REQUESTS: Final = Metric(
    "query_requests_total",
    Kind.COUNTER,
    "Requests answered, by root field and outcome.",
    ("operation", "outcome"),
)
QUERY_SECONDS: Final = Metric(
    "query_seconds_total", Kind.COUNTER, "Time spent answering requests.", ("operation",)
)

# The process itself.
BUILD_INFO: Final = Metric(
    "build_info", Kind.GAUGE, "Always 1; its labels name what runs.", ("process", "version")
)
PROCESS_CPU_SECONDS: Final = Metric(
    "process_cpu_seconds_total", Kind.COUNTER, "User and system time used.", ("process",)
)
PROCESS_RESIDENT_BYTES: Final = Metric(
    "process_resident_memory_bytes", Kind.GAUGE, "Resident memory.", ("process",)
)
PROCESS_OPEN_FDS: Final = Metric(
    "process_open_fds", Kind.GAUGE, "Open file descriptors.", ("process",)
)
PROCESS_START_TIME: Final = Metric(
    "process_start_time_seconds", Kind.GAUGE, "Start, in seconds since the epoch.", ("process",)
)

# Read from the names above, so that a row cannot be forgotten here.
ALL: Final[tuple[Metric, ...]] = tuple(
    value for value in list(globals().values()) if isinstance(value, Metric)
)


def _of(*rooms: str) -> tuple[Metric, ...]:
    shared = ("receiver_", "queue_", "process_", "build_", "telemetry_")
    return tuple(metric for metric in ALL if metric.name.startswith(rooms + shared))


SATELLITE: Final = _of("gatherer_", "processor_", "sender_")
OAP: Final = _of("pipeline_", "query_")
