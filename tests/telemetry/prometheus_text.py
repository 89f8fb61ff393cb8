"""A strict reader of Prometheus text 0.0.4: what it takes, a scraper takes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_HELP = re.compile(rf"# HELP ({_NAME}) ((?:[^\\]|\\\\|\\n)*)\Z")
_TYPE = re.compile(rf"# TYPE ({_NAME}) (counter|gauge|untyped)\Z")
_SAMPLE = re.compile(rf"({_NAME})(?:\{{(.*)\}})? (\S+)\Z")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\\\|\\"|\\n)*)"(,|\Z)')
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?|Inf)\Z|NaN\Z")
_ESCAPES = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}

Labels = tuple[tuple[str, str], ...]


@dataclass
class Family:
    help: str
    kind: str = ""
    samples: dict[Labels, float] = field(default_factory=dict)


def parse(text: str) -> dict[str, Family]:
    families: dict[str, Family] = {}
    assert text == "" or text.endswith("\n")
    current = ""
    for line in text.split("\n")[:-1]:
        if found := _HELP.match(line):
            current = found[1]
            assert current not in families, f"{current} comes twice"
            families[current] = Family(_unescaped(found[2]))
        elif found := _TYPE.match(line):
            assert found[1] == current, "TYPE stands under another HELP"
            assert not families[current].kind and not families[current].samples
            families[current].kind = found[2]
        else:
            found = _SAMPLE.match(line)
            assert found, f"not a sample: {line!r}"
            assert found[1] == current and families[current].kind, "a sample outside its family"
            assert _NUMBER.match(found[3]), f"not a number: {found[3]!r}"
            labels = _labels(found[2])
            assert labels not in families[current].samples, f"{line} comes twice"
            families[current].samples[labels] = float(found[3])
    return families


def _labels(text: str | None) -> Labels:
    if text is None:
        return ()
    labels: list[tuple[str, str]] = []
    position = 0
    while position < len(text):
        found = _LABEL.match(text, position)
        assert found, f"not labels: {text!r}"
        labels.append((found[1], _unescaped(found[2])))
        position = found.end()
    assert len({name for name, _ in labels}) == len(labels) > 0
    return tuple(labels)


def _unescaped(text: str) -> str:
    return re.sub(r'\\[\\"n]', lambda found: _ESCAPES[found[0]], text)
