"""Tags of spans.

Lambdas over arrays are interpreted, so each span's list is walked once: for the few tags that the
analysis reads. Everything after that is compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

HTTP_CODES: Final = ("http.status_code", "status_code")
RPC_CODE: Final = "rpc.status_code"
LOGIC_ENDPOINT: Final = "x-le"
CACHE_TYPE: Final = "cache.type"
CACHE_OPERATION: Final = "cache.op"
MQ_TOPIC: Final = "mq.topic"
MQ_QUEUE: Final = "mq.queue"
TRANSMISSION: Final = "transmission.latency"
READ: Final = (
    *HTTP_CODES,
    *(RPC_CODE, CACHE_TYPE, CACHE_OPERATION, MQ_TOPIC, MQ_QUEUE, TRANSMISSION),
)
_LOGIC: Final = "`logic-span` string, name string, latency string, status string"
_CONTROLS: Final = "".join(map(chr, range(33)))


def told(tags: Column, keys: Iterable[str]) -> Column:
    """Those of `READ` and of these keys, the last first; of http codes only numbers."""
    wanted = sorted({*READ, *keys})

    def useful(tag: Column) -> Column:
        number = whole(tag["value"], "int").isNotNull()
        return tag["key"].isin(wanted) & (~tag["key"].isin(*HTTP_CODES) | number)

    return F.reverse(F.filter(tags, useful))


def last(tags: Column, *keys: str) -> Column:
    """The value of that tag, of the last one if there are several; null if there is none. `tags`
    have the last first."""
    places = [F.array_position(tags["key"], key) for key in keys]
    if len(places) == 1:
        return F.get(tags, (places[0] - 1).cast("int"))["value"]
    first = F.least(*(F.nullif(place, F.lit(0)) for place in places))
    return F.get(tags, (first - 1).cast("int"))["value"]


def whole(text: Column, type_: str) -> Column:
    """As Java parses a number: digits, a sign before them, within range; or null."""
    return F.when(text.rlike(r"^[+-]?[0-9]+\z"), text.try_cast(type_))


def shown(tags: Column) -> Column:
    """The list that metrics may look into: `key:value`."""

    def pair(tag: Column) -> Column:
        key, value = (F.btrim(tag[name], F.lit(_CONTROLS)) for name in ("key", "value"))
        return F.concat_ws(":", key, value)

    return F.transform(tags, pair)


def logic_endpoints(
    tags: Column, local: Column, operation: Column, cut: Callable[[Column], Column]
) -> Column:
    """Name, latency and status of each endpoint that the tags speak of; null when there is none.

    A local span may say that it is one itself: then these are its own, and left null here.
    """

    def parsed(tag: Column) -> Column:
        said = F.from_json(tag["value"], _LOGIC)
        itself = local & (F.lower(said["logic-span"]) == "true")
        latency = said["latency"].try_cast("double").try_cast("int")
        complete = said["name"].isNotNull() & said["status"].isNotNull() & latency.isNotNull()
        return F.when(
            itself,
            F.struct(
                cut(operation).alias("name"),
                F.lit(None).cast("int").alias("latency"),
                F.lit(None).cast("boolean").alias("status"),
            ),
        ).when(
            complete,
            F.struct(
                cut(said["name"]).alias("name"),
                latency.alias("latency"),
                (F.lower(said["status"]) == "true").alias("status"),
            ),
        )

    these = F.filter(tags, lambda tag: tag["key"] == LOGIC_ENDPOINT)
    found = F.filter(F.transform(these, parsed), lambda one: one.isNotNull())
    return F.when(F.array_contains(tags["key"], LOGIC_ENDPOINT), found)
