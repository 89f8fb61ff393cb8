"""What browsers report of pages; their version is the instance, the page the endpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from skyfarer.oap.core.layers import Layer
from skyfarer.oap.pipeline.sources.reports.declared import Part, Report, Value, always, named, same
from skyfarer.oap.pipeline.sources.shapes import PAGE_TIMES
from skyfarer.wire.rpc import Kind


def _thousandths(messages: pa.StructArray) -> pa.Array:
    """What is no number, or one of no page, is left out by the metrics, as what is below 0."""
    cls = pc.multiply(pc.struct_field(messages, "cls"), 1000.0)
    known = pc.and_(pc.is_finite(cls), pc.less(pc.abs(cls), 2.0**31))
    return pc.floor(pc.add(pc.if_else(known, cls, -1.0), 0.5)).cast(pa.int64())


def _category(messages: pa.StructArray) -> pa.Array:
    first = pc.struct_field(messages, "firstReportedError")
    return pc.if_else(first, "FIRST_ERROR", "ERROR")


_error_named = named("BrowserErrorCategory", "category")


def _error(messages: pa.StructArray) -> pa.Array:
    return pc.coalesce(_error_named(messages), pa.scalar("UNKNOWN"))


def _traffic(values: Mapping[str, Value]) -> tuple[Part, ...]:
    sources = ("BrowserAppTraffic", "BrowserAppSingleVersionTraffic", "BrowserAppPageTraffic")
    return tuple(Part(source, "", {"count": always(1), **values}) for source in sources)


_PAGE: Final = {"service": "service", "instance": "serviceVersion", "endpoint": "pagePath"}
BROWSERS: Final[Mapping[int, Report]] = {
    Kind.BROWSER_PAGE: Report(
        Layer.BROWSER,
        _PAGE,
        (
            *_traffic({"trafficCategory": always("NORMAL")}),
            Part("BrowserAppPagePerf", "", same(*PAGE_TIMES)),
        ),
    ),
    Kind.BROWSER_ERROR: Report(
        Layer.BROWSER, _PAGE, _traffic({"trafficCategory": _category, "errorCategory": _error})
    ),
    Kind.BROWSER_WEB_VITALS: Report(
        Layer.BROWSER,
        _PAGE,
        (
            Part(
                "BrowserAppWebVitalsPerf",
                "",
                {"cls": _thousandths, **same("fmpTime", "lcpTime")},
            ),
        ),
    ),
    Kind.BROWSER_RESOURCE: Report(
        Layer.BROWSER,
        _PAGE,
        (
            Part(
                "BrowserAppResourcePerf",
                "",
                {"type": "resourceType", **same("name", "protocol", "duration", "size")},
            ),
        ),
    ),
    Kind.BROWSER_INTERACTION: Report(
        Layer.BROWSER, _PAGE, (Part("BrowserAppWebInteractionPerf", "", same("inpTime")),)
    ),
}
