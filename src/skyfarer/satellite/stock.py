"""Reading a configuration that was written for the original: what means something else here.

Each function takes the values of one section as written, hands back what our own dataclass can
bind, and notes in words what is read differently. A key that has the original's meaning, or a value
at which both behave alike, is not noted: a note is something its reader may want to act on.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from skyfarer.base.binding import nearest
from skyfarer.base.errors import ConfigError
from skyfarer.base.units import MIB
from skyfarer.queue.settings import FLUSH_COUNT_MAX, FLUSH_PERIOD_MS_MAX, SEGMENTS_MAPPED_MAX

PLACES_SHOWN_MAX = 2
MEMORY_QUEUE_CAPACITY_BYTES = 64 * MIB
TRUE = "true"
FALLBACKERS = ("retry-fallbacker", "none-fallbacker", "timer-fallbacker")

_LEVELS = {"warn": "warning", "trace": "debug", "fatal": "error", "panic": "error"}

# (kind of plugin, its name) → key of the original that nothing here reads → what happens instead.
_LEFT_OUT: Mapping[tuple[str, str], Mapping[str, str]] = {
    ("client", "grpc-client"): {
        "check_period": "the connection is watched by its calls, not by a timer",
    },
    ("client", "kafka-client"): {
        "version": "the broker is asked for its version",
        "producer_max_retry": "a batch that fails is sent again without end",
        "meta_max_retry": "a batch that fails is sent again without end",
        "retry_backoff": "pauses are those of sender.retry",
        "refresh_period": "the client library decides when to ask for metadata",
        "required_acks": "all replicas must have a record before it counts as delivered",
        "idempotent_writes": "writes are idempotent always",
        "client_id": "the client names itself",
        "compression_codec": "records are sent as they are",
    },
    ("server", "grpc-server"): {"network": "it is TCP always"},
    ("server", "http-server"): {},
}
# Unused there as well while the value beside them is the usual one: no word about these.
_SILENT: Mapping[tuple[str, str], Collection[str]] = {
    ("client", "grpc-client"): ("kubernetes_config",),
}


class Notes:
    """What was read differently: one line for each thing, with the places where it stands."""

    def __init__(self) -> None:
        self._places: dict[str, list[str]] = {}

    def add(self, where: str, what: str) -> None:
        places = self._places.setdefault(what, [])
        if where not in places:
            places.append(where)

    def lines(self) -> list[str]:
        return [f"{_listed(places)}: {what}" for what, places in self._places.items()]


def _listed(places: list[str]) -> str:
    shown = ", ".join([places[0], *(_without_file(p) for p in places[1:PLACES_SHOWN_MAX])])
    more = len(places) - PLACES_SHOWN_MAX
    return f"{shown} and {more} more" if more > 0 else shown


def _without_file(place: str) -> str:
    return place.partition(": ")[2] or place


def logger(values: Mapping[str, object], where: str, notes: Notes) -> dict[str, object]:
    kept = dict(values)
    for key in ("log_pattern", "time_pattern"):
        if kept.pop(key, None) is not None:
            notes.add(
                where, "lines are time=… level=… message=…, or JSON; log_pattern, time_pattern"
            )
    level = kept.get("level")
    if isinstance(level, str) and level.lower() in _LEVELS:
        kept["level"] = _LEVELS[level.lower()]
    return kept


def telemetry(values: Mapping[str, object], where: str, notes: Notes) -> dict[str, object]:
    kept = dict(values)
    kept.pop("pprof", None)
    exports = _text(kept.get("export_type")).replace(" ", "").split(",")
    if "pprof" in exports:
        kept["export_type"] = ",".join(one for one in exports if one != "pprof") or "none"
        notes.add(where, "export_type pprof profiles Go programs; nothing listens for it here")
    return kept


def sharing(values: Mapping[str, object]) -> dict[str, object]:
    """`common_config` names the plugins' pipe in old files, and nothing reads it there either."""
    return {key: value for key, value in values.items() if key != "common_config"}


def plugin(
    kind: str,
    name: str,
    values: Mapping[str, object],
    fields: Collection[str],
    where: str,
    notes: Notes,
) -> dict[str, object]:
    """`fields` are the keys the plugin has here: what it reads itself is left to it."""
    kept: dict[str, object] = {}
    left_out = _LEFT_OUT.get((kind, name), {})
    for key, value in values.items():
        if key in fields:
            kept[key] = value
        elif key in left_out:
            notes.add(f"{where}.{key}", left_out[key])
        elif key not in _SILENT.get((kind, name), ()):
            kept[key] = value
    if (kind, name) == ("server", "grpc-server"):
        _accept_limit(kept, where, notes)
    if _text(kept.get("insecure_skip_verify")) == TRUE and _text(kept.get("enable_tls")) == TRUE:
        notes.add(f"{where}.insecure_skip_verify", "true: anyone may pose as the upstream")
    return kept


def _accept_limit(values: dict[str, object], where: str, notes: Notes) -> None:
    limit = values.get("accept_limit")
    if not isinstance(limit, Mapping) or "cpu_utilization" not in limit:
        return
    values["accept_limit"] = {k: v for k, v in limit.items() if k != "cpu_utilization"}
    percent = _text(limit["cpu_utilization"])
    if not percent.isdigit() or int(percent) < 100:
        notes.add(
            f"{where}.accept_limit.cpu_utilization",
            "the load of the whole machine refuses nobody; memory_limit and connection_count do",
        )


def receiver(
    name: str, values: Mapping[str, object], where: str, notes: Notes
) -> dict[str, object]:
    kept = dict(values)
    if name == "http-native-log-receiver":
        if _text(kept.pop("uri", "/logging")) != "/logging":
            raise ConfigError(f"{where}.uri must be /logging")
        kept.pop("timeout", None)
    for key in ("flush_time", "limit_count"):
        if name.startswith("grpc-envoy-") and kept.pop(key, None) is not None:
            notes.add(
                f"{where}.{key}", "a stream's messages are kept as they come, none waits for others"
            )
    return kept


def queue(values: Mapping[str, object], where: str, notes: Notes) -> dict[str, object]:
    """`plugin_name` included, before and after."""
    kept = dict(values)
    name = kept.get("plugin_name")
    if _text(kept.pop("partition", "1")) != "1":
        notes.add(
            f"{where}.partition", "a pipe has one queue, which keeps the order of its records"
        )
    if name == "memory-queue":
        kept.pop("event_buffer_size", None)
        kept["plugin_name"] = "mmap-queue"
        kept.setdefault("capacity_bytes", str(MEMORY_QUEUE_CAPACITY_BYTES))
        notes.add(
            where,
            "memory-queue lies in files, so that no restart loses it; its bound is capacity_bytes,"
            f" by default {MEMORY_QUEUE_CAPACITY_BYTES}, instead of event_buffer_size",
        )
    elif name == "mmap-queue":
        _mmap_queue(kept, where, notes)
    return kept


_RENAMED = {  # our name of the same, its default there, the highest it may be here
    "max_in_mem_segments": ("segments_mapped_max", 10, SEGMENTS_MAPPED_MAX),
    "flush_period": ("flush_period_ms", 1000, FLUSH_PERIOD_MS_MAX),
    "flush_ceiling_num": ("flush_count", 10_000, FLUSH_COUNT_MAX),
}


def _mmap_queue(values: dict[str, object], where: str, notes: Notes) -> None:
    size = _text(values.pop("segment_size", ""))
    segments = _text(values.pop("queue_capacity_segments", ""))
    if (size or segments) and "capacity_bytes" not in values:
        wanted = _whole(size, 262_144) * _whole(segments, 2000)
        values["capacity_bytes"] = str(max(wanted, 8 * MIB))
        notes.add(
            where,
            "segment_size times queue_capacity_segments is read as capacity_bytes;"
            " segment_bytes is a key of its own",
        )
    if "max_event_size" in values:
        values.setdefault("record_bytes_max", values.pop("max_event_size"))
    for old, (new, usual, highest) in _RENAMED.items():
        if (value := values.pop(old, None)) is not None:
            values.setdefault(new, str(min(_whole(_text(value), usual), highest)))
    if values.pop("queue_dir", None) is not None:
        notes.add(f"{where}.queue_dir", "the directory is data_directory's")


def sender(values: Mapping[str, object], where: str, notes: Notes) -> dict[str, object]:
    kept = dict(values)
    minimum = _text(kept.pop("min_flush_events", "1"))
    if minimum != "1":
        notes.add(
            f"{where}.min_flush_events", "a batch leaves at flush_time, however few records it has"
        )
    fallbacker = kept.pop("fallbacker", None)
    if isinstance(fallbacker, Mapping):
        _fallbacker(kept, fallbacker, f"{where}.fallbacker", notes)
    elif fallbacker is not None:
        raise ConfigError(f"{where}.fallbacker must hold keys and values, not {fallbacker!r}")
    return kept


def _fallbacker(
    values: dict[str, object], fallbacker: Mapping[str, object], where: str, notes: Notes
) -> None:
    name = fallbacker.get("plugin_name")
    if name == "retry-fallbacker":
        values.setdefault("retry", {k: v for k, v in fallbacker.items() if k != "plugin_name"})
    elif name == "none-fallbacker":
        notes.add(where, "none-fallbacker would lose a batch that fails; it is sent again instead")
    elif name == "timer-fallbacker":
        pauses = {"initial": "exponential_backoff", "maximum": "max_backoff"}
        values.setdefault(
            "retry", {k: f"{_text(fallbacker[v])}ms" for k, v in pauses.items() if v in fallbacker}
        )
        notes.add(
            where,
            "timer-fallbacker would lose a batch after max_attempts; it is sent again until"
            " retry.max_elapsed, by default without end",
        )
    else:
        hint = nearest(str(name), FALLBACKERS)
        raise ConfigError(f"{where}.plugin_name: there is no fallbacker named '{name}'{hint}")


def forwarder(values: Mapping[str, object], where: str, notes: Notes) -> dict[str, object]:
    kept = dict(values)
    for key in ("routing_rule_lru_cache_size", "routing_rule_lru_cache_ttl"):
        if kept.pop(key, None) is not None:
            notes.add(
                f"{where}.{key}", "an upstream is found by consistent hashing, which needs no cache"
            )
    if kept.pop("routing_label_keys", None) is not None:
        notes.add(f"{where}.routing_label_keys", "a batch goes to any upstream")
    if kept.pop("topic", None) is not None:
        notes.add(f"{where}.topic", "topics are those the OAP reads, or set at kafka-client")
    return kept


def _text(value: object) -> str:
    return "" if value is None else str(value).strip().lower()


def _whole(text: str, default: int) -> int:
    return int(text) if text.isascii() and text.isdigit() else default
