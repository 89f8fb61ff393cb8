"""The documents of clients, by operation; `documents/README.md` says what they are."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent / "documents"
DOCUMENT = re.compile(
    r"^# (?P<askers>[^\n]+)\n(?P<text>(?:query|mutation) (?P<name>\w+).*?^}$)", re.M | re.S
)


@dataclass(frozen=True)
class Document:
    """`askers` as a person reads them."""

    operation: str
    askers: str
    text: str

    @property
    def changes(self) -> bool:
        return self.text.startswith("mutation")


@cache
def documents() -> dict[str, Document]:
    found = [
        Document(one["name"], one["askers"], one["text"])
        for path in sorted(HERE.glob("*.graphql"))
        for one in DOCUMENT.finditer(path.read_text())
    ]
    by_name = {document.operation: document for document in found}
    assert len(by_name) == len(found), "an operation has one document"
    return by_name
