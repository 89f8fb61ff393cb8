"""What several rules read of a span in the same way."""

from __future__ import annotations

from typing import Final

from skyfarer.wire.messages import SpanLayer, SpanObject

MINUTE_MS: Final = 60_000
LATENCY_MS_MAX: Final = 2**31 - 1
_REQUESTS: Final = {
    SpanLayer.Http: "HTTP",
    SpanLayer.Database: "DATABASE",
    SpanLayer.MQ: "MQ",
    SpanLayer.GenAI: "GenAI",
}
_JAVA_SPACE: Final = "".join(map(chr, range(0x21)))


def minute(span: SpanObject) -> int:
    return span.startTime // MINUTE_MS


def latency(span: SpanObject) -> int:
    """In milliseconds."""
    return within(span.endTime - span.startTime)


def within(latency_ms: float) -> int:
    """One that no 32-bit number holds is the nearest that is one: the original's would come back as
    any number, even a negative one."""
    return int(max(-LATENCY_MS_MAX - 1, min(LATENCY_MS_MAX, latency_ms)))


def tag_map(span: SpanObject) -> dict[str, str]:
    """The last value of a key wins."""
    return {tag.key: tag.value for tag in span.tags}


def tag_list(span: SpanObject) -> list[str]:
    return [f"{tag.key.strip(_JAVA_SPACE)}:{tag.value.strip(_JAVA_SPACE)}" for tag in span.tags]


def http_code(span: SpanObject) -> int:
    """The last that is a number, by either name."""
    code = 0
    for tag in span.tags:
        if tag.key in ("http.status_code", "status_code"):
            number = java_number(tag.value, 32)
            code = code if number is None else number
    return code


def request_type(span: SpanObject) -> str:
    return _REQUESTS.get(span.spanLayer, "RPC")


def java_number(text: str, bits: int) -> int | None:
    """As Java reads one: digits, a sign before them, within range; or None."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()):
        return None
    number, limit = int(text), 2 ** (bits - 1)
    return number if -limit <= number < limit else None


def blank(text: str) -> bool:
    """As Java trims: of the spaces of other scripts each is a character like any."""
    return not text.strip(_JAVA_SPACE)
