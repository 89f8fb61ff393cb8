"""Names: cut to their lengths, and whether there is one at all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from skyfarer.oap.core.ids import SHOWS
from skyfarer.oap.pipeline.analysis.settings import NamingSettings


@dataclass(frozen=True)
class Names:
    """Each cut to the length that is kept of it."""

    naming: NamingSettings

    def service(self, text: Column) -> Column:
        return cut(text, self.naming.service_chars_max)

    def instance(self, text: Column) -> Column:
        return cut(text, self.naming.instance_chars_max)

    def endpoint(self, text: Column) -> Column:
        return cut(text, self.naming.endpoint_chars_max)


def cut(text: Column, chars_max: int) -> Column:
    """By characters. To count them takes time, so a text of as few bytes is left as it is."""
    short = F.octet_length(text) <= chars_max
    return F.when(short, text).otherwise(F.substring(text, 1, chars_max))


def nonblank(text: Column) -> Column:
    """Null for a text without a character that shows. Mostly the first one does, and none sorts
    before `!`, which takes a fraction of the time to see."""
    return F.when((text >= "!") | text.rlike(SHOWS), text)


def among(text: Column, texts: frozenset[str]) -> Column:
    return text.isin(sorted(texts)) if texts else F.lit(False)


def named(columns: Mapping[str, Column]) -> tuple[Column, ...]:
    return tuple(column.alias(name) for name, column in columns.items())
