"""The text format of Prometheus, version 0.0.4, read as bytes.

A line that is none of it is passed over and counted: one bad library in a process must not hide the
others. The order of lines does not matter but for one thing: a family's TYPE comes before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

NAME: Final = b"__name__"
# Possessive throughout: what was taken is never given back, so a line costs its length, whatever a
# target sends.
_SPACE: Final = rb"[ \t]*+"
_LABEL_NAME: Final = rb"[a-zA-Z_][a-zA-Z0-9_]*+"
_QUOTED: Final = rb"[^\"\\]*+(?:\\.[^\"\\]*+)*+"
_PAIR: Final = _SPACE + rb"%b" + _SPACE + rb"=" + _SPACE + rb"\"%b\"" + _SPACE + rb",?+"
_PAIRS: Final = rb"\{((?:" + _PAIR % (_LABEL_NAME, _QUOTED) + rb")*+)" + _SPACE + rb"\}" + _SPACE
_SAMPLE: Final = re.compile(
    rb"([a-zA-Z_:][a-zA-Z0-9_:]*+)(?:%b%b|[ \t]++)([^ \t]++)(?:[ \t]++(-?[0-9]++))?\Z"
    % (_SPACE, _PAIRS)
)
_LABEL: Final = re.compile(_PAIR % (rb"(" + _LABEL_NAME + rb")", rb"(" + _QUOTED + rb")"))
_TYPE: Final = re.compile(rb"#[ \t]+TYPE[ \t]+([a-zA-Z_:][a-zA-Z0-9_:]*)[ \t]+([a-z]+)[ \t]*\Z")
_ESCAPE: Final = re.compile(rb"\\([\\\"n])")
_ESCAPED: Final = {b"\\": b"\\", b'"': b'"', b"n": b"\n"}


class Sample(NamedTuple):
    """`labels` is the caller's own. `timestamp_ms` is the target's, if it gave one."""

    name: bytes
    labels: dict[bytes, bytes]
    value: float
    timestamp_ms: int | None


class Type(NamedTuple):
    family: bytes
    kind: bytes


def parse(body: bytes) -> Iterator[Sample | Type | None]:
    """What each line says; None for one that cannot be read. Blank lines and comments are left
    out."""
    for line in body.split(b"\n"):
        text = line.strip(b" \t\r")
        if not text:
            continue
        if text.startswith(b"#"):
            declared = _TYPE.match(text)
            if declared is not None:
                yield Type(declared[1], declared[2])
            continue
        yield _sample(text)


def _sample(text: bytes) -> Sample | None:
    match = _SAMPLE.match(text)
    if match is None:
        return None
    name, inside, number, timestamp = match.groups()
    try:
        value = float(number)
    except ValueError:
        return None
    labels = _labels(inside) if inside else {}
    return Sample(name, labels, value, int(timestamp) if timestamp else None)


def _labels(inside: bytes) -> dict[bytes, bytes]:
    pairs = _LABEL.findall(inside)
    if b"\\" in inside:
        pairs = [(name, _unescaped(value)) for name, value in pairs]
    return dict(pairs)


def _unescaped(value: bytes) -> bytes:
    return _ESCAPE.sub(lambda match: _ESCAPED[match[1]], value)
