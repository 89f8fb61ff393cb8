"""Tags of spans, looked up without a lambda.

Spark interprets lambdas over arrays, and does not compile the stage that holds one: a filter over
three tags cost more than all the rest of the analysis of their span. So the names of a span's tags
are taken once, the last first, and everything is found by its place among them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from skyfarer.wire.messages import SpanType

HTTP_CODES: Final = ("http.status_code", "status_code")
RPC_CODE: Final = "rpc.status_code"
LOGIC_ENDPOINT: Final = "x-le"
CACHE_TYPE: Final = "cache.type"
CACHE_OPERATION: Final = "cache.op"
MQ_TOPIC: Final = "mq.topic"
MQ_QUEUE: Final = "mq.queue"
TRANSMISSION: Final = "transmission.latency"
_NUMBER: Final = r"^[+-]?[0-9]+\z"
_DECIMAL: Final = r"^[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?\z"
_CODES: Final = r'\{"key":"(?:http\.)?status_code","value":"([+-]?[0-9]+)"\}'
_INT_MIN, _INT_MAX = -(2**31), 2**31 - 1
_CONTROLS: Final = "".join(map(chr, range(33)))


def keys_of(tags: Column) -> Column:
    """For the column `keys`: the names, the last first; null where there are none."""
    return F.when(F.size(tags) > 0, F.reverse(tags["key"]))


def place(key: str) -> Column:
    """Counted from 1 at the last tag; 0 when there is none of that name, null without any tag."""
    return F.array_position(F.col("keys"), key)


def last(key: str) -> Column:
    """The value of that tag, of the last one if there are several; null when there is none."""
    return _at(place(key))


def http_code() -> Column:
    """The last one that is a number counts, by either name; 0 when there is none.

    One that is no number is rare, and so is another before it: that is looked for in the tags as
    text, where their order is kept.
    """
    places = (F.nullif(place(key), F.lit(0)) for key in HTTP_CODES)
    written = _at(F.least(*places))
    told = F.regexp_extract_all(F.to_json("tags"), F.lit(_CODES)).try_cast("array<int>")
    sound = F.array_join(told.cast("array<string>"), " ")
    earlier = F.substring_index(sound, " ", -1).try_cast("int")
    found = F.when(written.isNotNull(), F.coalesce(whole(written, "int"), earlier))
    return F.coalesce(found, F.lit(0))


def whole(text: Column, type_: str) -> Column:
    """As Java parses a number: digits, a sign before them, within range; or null."""
    return F.when(text.rlike(_NUMBER), text.try_cast(type_))


def nearest(number: Column) -> Column:
    """That 32 bits hold, of a number that is not null."""
    return F.least(F.greatest(number, F.lit(_INT_MIN)), F.lit(_INT_MAX)).cast("int")


def shown(tags: Column) -> Column:
    """The list that metrics may look into: `key:value`. Rarely wanted, and interpreted."""

    def pair(tag: Column) -> Column:
        key, value = (F.btrim(tag[name], F.lit(_CONTROLS)) for name in ("key", "value"))
        return F.concat_ws(":", key, value)

    return F.transform(tags, pair)


class LogicEndpoint:
    """What one tag says to be an endpoint, though nobody can call it from outside.

    A local span may say that it is one itself: then its name and its time are the span's own.
    Spark reads JSON as lenient as the original does where quotes are single ones.
    """

    def __init__(self, tag: Column, cut: Callable[[Column], Column]) -> None:
        def said(name: str) -> Column:
            return F.get_json_object(tag["value"], f"$.{name}")

        local = F.col("span_type") == SpanType.Local
        itself = local & F.coalesce(F.lower(said("logic-span")) == "true", F.lit(False))
        written = said("latency")
        latency = F.when(written.rlike(_DECIMAL), nearest(written.try_cast("double")))
        complete = said("name").isNotNull() & latency.isNotNull() & said("status").isNotNull()
        self.sound = (tag["key"] == LOGIC_ENDPOINT) & (itself | complete)
        self.name = F.when(itself, F.col("endpoint")).otherwise(cut(said("name")))
        self.latency = F.when(itself, F.col("latency")).otherwise(latency)
        self.status = F.when(itself, F.col("status")).otherwise(F.lower(said("status")) == "true")


def _at(place_: Column) -> Column:
    """The value at a place of `keys`."""
    return F.get("tags", (F.size("tags") - place_).cast("int"))["value"]
