"""Every self-metric of both programs, in one table.

Names are the wire's: dashboards and alarms are written against them, so a name is changed only with
a line in the changelog. Those of the satellite's design document and of its original keep their
spelling, and where it breaks Prometheus' rules they are shown untyped. The ledger of a queue is
four of these: accepted = delivered + queued + dropped. `rpc` is a method's path, `reason` one word
of the code that counts, `process` what tells the processes of one program apart.
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
    "Calls ended, by path and status: gRPC's name of it, or HTTP's number.",
    ("rpc", "status"),
)
RECEIVER_CALLS_DENIED: Final = Metric(
    "receiver_calls_denied_total",
    Kind.COUNTER,
    "Calls and requests refused for want of a valid token.",
    ("reason",),
)
RECEIVER_MESSAGES: Final = Metric(
    "receiver_messages_total",
    Kind.COUNTER,
    "Messages in the queue: appended to it, or sent again and known to be there.",
    ("rpc",),
)
RECEIVER_REFUSED: Final = Metric(
    "receiver_messages_refused_total",
    Kind.COUNTER,
    "Messages refused for what they are, and so never in the queue.",
    ("rpc", "reason"),
)
RECEIVER_REPEATS: Final = Metric(
    "receiver_repeats_total",
    Kind.COUNTER,
    "Records of satellites dropped as the queue has them: resent, since an answer was lost, or "
    "settled, which a satellite that lost its place sends from before that.",
    ("reason",),
)
RECEIVER_UNSURE: Final = Metric(
    "receiver_unsure_total",
    Kind.COUNTER,
    "Records of satellites kept though it is not known whether the queue had them.",
    ("reason",),
)
RECEIVER_PRODUCERS: Final = Metric(
    "receiver_producers", Kind.GAUGE, "Queues of satellites whose records are known."
)
RECEIVER_PRODUCERS_FORGOTTEN: Final = Metric(
    "receiver_producers_forgotten_total",
    Kind.COUNTER,
    "Queues of satellites forgotten because there were too many.",
)
RECEIVER_BYTES: Final = Metric(
    "receiver_bytes_total", Kind.COUNTER, "Bytes of messages received, before inflating."
)
RECEIVER_RELAYED: Final = Metric(
    "receiver_relayed_calls", Kind.GAUGE, "Calls that wait for the backend's answer."
)

REGISTRY_RECORDS: Final = Metric(
    "registry_records_total",
    Kind.COUNTER,
    "Names without an id, mappings and signs of life of v2 agents handed to the queue.",
    ("scope",),
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
    "gatherer_watermark_offset",
    Kind.GAUGE,
    "Sequence up to which a power cut takes no record: it is on the disk, or delivered.",
    ("pipe",),
)
PROCESSOR_READING_COUNT: Final = Metric(
    "processor_reading_count",
    Kind.COUNTER,
    "Records read from the queue.",
    ("pipe",),
    given_name=True,
)
SENDER_COMMITTED_OFFSET: Final = Metric(
    "sender_committed_offset",
    Kind.GAUGE,
    "Sequence up to which the backend has acknowledged.",
    ("pipe",),
)
SENDER_ABANDONED_COUNT: Final = Metric(
    "sender_abandoned_count",
    Kind.COUNTER,
    "Records given up by the sender.",
    ("pipe", "reason"),
    given_name=True,
)
SENDER_RETRY_COUNT: Final = Metric(
    "sender_retry_count",
    Kind.COUNTER,
    "Batches tried again.",
    ("pipe",),
    given_name=True,
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
SENDER_PARKED: Final = Metric(
    "sender_parked_total", Kind.COUNTER, "Records written as dead letters.", ("pipe", "reason")
)
SENDER_EJECTIONS: Final = Metric(
    "sender_ejections_total",
    Kind.COUNTER,
    "Times an upstream was left out for a while because it failed.",
    ("upstream",),
)
SENDER_UPSTREAMS_EJECTED: Final = Metric(
    "sender_upstreams_ejected", Kind.GAUGE, "Upstreams that are left out for a while."
)
SENDER_KAFKA_RECORDS: Final = Metric(
    "sender_kafka_records_total",
    Kind.COUNTER,
    "Records that Kafka reported on, by topic and its name for the outcome.",
    ("topic", "status"),
)
SENDER_ACCESS_DENIED: Final = Metric(
    "sender_access_denied", Kind.GAUGE, "1 while the backend refuses our credentials.", ("pipe",)
)

# Filters: between queue and sender.
PROCESSOR_DROPPED: Final = Metric(
    "processor_dropped_total", Kind.COUNTER, "Records that filters gave up.", ("pipe", "reason")
)
PROCESSOR_FAILURES: Final = Metric(
    "processor_failures_total",
    Kind.COUNTER,
    "Records a filter could not work on.",
    ("pipe", "filter", "reason"),
)
PROCESSOR_EMITTED: Final = Metric(
    "processor_emitted_total",
    Kind.COUNTER,
    "Records that filters made beside the queue's own, taken by the backend.",
    ("pipe",),
)

# The satellite's, by the names its original gave them: dashboards are drawn from these.
GATHERER_RECEIVE_COUNT: Final = Metric(
    "gatherer_receive_count",
    Kind.COUNTER,
    "Records that came to a receiver; abandoned are those refused.",
    ("pipe", "status"),
    given_name=True,
)
GATHERER_FETCH_COUNT: Final = Metric(
    "gatherer_fetch_count",
    Kind.COUNTER,
    "Records that a fetcher brought; abandoned are those it must bring again.",
    ("pipe", "status"),
    given_name=True,
)
QUEUE_OUTPUT_COUNT: Final = Metric(
    "queue_output_count",
    Kind.COUNTER,
    "Records that left the queue; error are those that could not be read.",
    ("pipe", "status"),
    given_name=True,
)
SENDER_OUTPUT_COUNT: Final = Metric(
    "sender_output_count",
    Kind.COUNTER,
    "Records sent, by what they are; failure are those refused for good.",
    ("pipe", "status", "type"),
    given_name=True,
)
PIPELINE_QUEUE_CAPACITY: Final = Metric(
    "pipeline_queue_total_capacity", Kind.GAUGE, "Bytes the queue may take.", ("pipeline",)
)
PIPELINE_QUEUE_SIZE: Final = Metric(
    "pipeline_queue_partition_size",
    Kind.GAUGE,
    "Bytes of the queue in use, in whole segments.",
    ("pipeline", "partition"),
)
GRPC_SERVER_CPU: Final = Metric(
    "grpc_server_cpu_percent",
    Kind.GAUGE,
    "Percent of one core that this process uses; as a meter it has the name of the original.",
)
GRPC_SERVER_CONNECTIONS: Final = Metric(
    "grpc_server_connection_count",
    Kind.GAUGE,
    "Open connections of agents.",
    given_name=True,
)

# The satellite as a program.
SATELLITE_RELOADS: Final = Metric(
    "satellite_reloads_total", Kind.COUNTER, "Configurations read while it ran.", ("outcome",)
)
SATELLITE_MEMORY: Final = Metric(
    "satellite_own_memory_bytes", Kind.GAUGE, "Resident memory without the pages of files."
)
SATELLITE_MEMORY_LIMIT: Final = Metric(
    "satellite_memory_limit_bytes", Kind.GAUGE, "Own memory above which nothing is taken in."
)
SATELLITE_TASKS: Final = Metric(
    "satellite_tasks", Kind.GAUGE, "Tasks of the event loop; the original counts goroutines."
)

# Fetchers: log files and Prometheus targets → queue.
GATHERER_LOG_FILES: Final = Metric(
    "gatherer_log_files", Kind.GAUGE, "Log files watched.", ("service",)
)
GATHERER_LOG_UNREAD: Final = Metric(
    "gatherer_log_unread_bytes", Kind.GAUGE, "Bytes of log files not yet queued.", ("service",)
)
GATHERER_LOG_BYTES: Final = Metric(
    "gatherer_log_bytes_total", Kind.COUNTER, "Bytes of log files queued.", ("service",)
)
GATHERER_LOG_CUT: Final = Metric(
    "gatherer_log_cut_total", Kind.COUNTER, "Cuts through what was too long.", ("service",)
)
GATHERER_LOG_UNDECODABLE: Final = Metric(
    "gatherer_log_undecodable_total",
    Kind.COUNTER,
    "Log records with bytes that are not of their encoding, and were replaced.",
    ("service",),
)
GATHERER_LOG_REFUSED: Final = Metric(
    "gatherer_log_refused_total",
    Kind.COUNTER,
    "Log records too large for the queue, and so given up.",
    ("service",),
)
GATHERER_LOG_ROTATIONS: Final = Metric(
    "gatherer_log_rotations_total", Kind.COUNTER, "Log files renamed, cut off or gone.", ("how",)
)
GATHERER_LOG_WAITS: Final = Metric(
    "gatherer_log_waits_total", Kind.COUNTER, "Pauses until the queue takes more.", ("service",)
)
GATHERER_SCRAPES: Final = Metric(
    "gatherer_scrapes_total",
    Kind.COUNTER,
    "Prometheus targets asked; every outcome but ok is a failure.",
    ("target", "outcome"),
)
GATHERER_SCRAPE_SAMPLES: Final = Metric(
    "gatherer_scrape_samples_total",
    Kind.COUNTER,
    "Samples scraped: kept, dropped by a rule, malformed or not finite.",
    ("outcome",),
)

# The Spark pipeline: queue → storage.
PIPELINE_BATCHES: Final = Metric("pipeline_batches_total", Kind.COUNTER, "Micro-batches stored.")
PIPELINE_RECORDS: Final = Metric(
    "pipeline_records_total", Kind.COUNTER, "Queue records handled.", ("outcome",)
)
PIPELINE_PARKED: Final = Metric(
    "pipeline_parked_total", Kind.COUNTER, "Records set aside as unreadable.", ("reason",)
)
PIPELINE_RETRIED: Final = Metric(
    "pipeline_retried_total",
    Kind.COUNTER,
    "Parked records sent again on demand; each is accepted anew, as a record of its own.",
)
PIPELINE_KEPT: Final = Metric(
    "pipeline_kept_total",
    Kind.COUNTER,
    "Records that nothing analyses, stored as they came; counted as stored as well.",
    ("kind",),
)
PIPELINE_UNSAMPLED: Final = Metric(
    "pipeline_unsampled_total",
    Kind.COUNTER,
    "Segments that were analysed and, as the sampling policy says, not stored.",
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
PIPELINE_LAG_SECONDS: Final = Metric(
    "pipeline_lag_seconds",
    Kind.GAUGE,
    "Age of the oldest record that is not in storage yet, as far as it was seen.",
)
PIPELINE_ROWS: Final = Metric(
    "pipeline_rows_total",
    Kind.COUNTER,
    "Rows handed to storage: what batches of records came to.",
    ("what",),
)
PIPELINE_RESTARTS: Final = Metric(
    "pipeline_restarts_total", Kind.COUNTER, "Times the streaming query was started again."
)

# Expiring data, on every node.
TTL_LAST_SUCCESS_AGE: Final = Metric(
    "ttl_last_success_age_seconds",
    Kind.GAUGE,
    "Since this node last saw that nothing expired was left, or less of it than before.",
)
OLDEST_DATA_AGE: Final = Metric(
    "oldest_data_age_seconds",
    Kind.GAUGE,
    "Since the oldest day began that there is a table of; record or metrics.",
    ("kept",),
)
TTL_EXPIRED_TABLES: Final = Metric(
    "ttl_expired_tables", Kind.GAUGE, "Tables of days that have expired and are still there."
)
TTL_DROPPED: Final = Metric(
    "ttl_dropped_total", Kind.COUNTER, "Tables of days that this node has dropped.", ("kept",)
)
TTL_FAILURES: Final = Metric(
    "ttl_failures_total", Kind.COUNTER, "Tables of days that could not be dropped.", ("model",)
)
TTL_RUNS: Final = Metric(
    "ttl_runs_total",
    Kind.COUNTER,
    "Runs of the keeper: clean, dropped, failed (a table, or the run), waited (another's turn or "
    "lease), refused (a clock).",
    ("outcome",),
)

# The cluster.
CLUSTER_NODES: Final = Metric(
    "cluster_nodes", Kind.GAUGE, "Nodes that the coordinator has told us of, this one included."
)
CLUSTER_RENEWALS: Final = Metric(
    "cluster_registrations_renewed_total",
    Kind.COUNTER,
    "Times the coordinator had lost this node and was told anew.",
)
CLUSTER_REACHABLE: Final = Metric(
    "cluster_coordinator_reachable", Kind.GAUGE, "1 while the coordinator answers, else 0."
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
PROCESS_THREADS: Final = Metric("process_threads", Kind.GAUGE, "Threads.", ("process",))
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


SATELLITE: Final = _of(
    "gatherer_", "processor_", "sender_", "pipeline_queue_", "grpc_server_", "satellite_"
)
OAP: Final = tuple(
    row
    for row in _of("pipeline_", "query_", "registry_", "ttl_", "oldest_data_", "cluster_")
    if "pipeline_queue" not in row.name
)
