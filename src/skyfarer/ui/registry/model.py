"""The registry as values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

KINDS: Final = {
    "service": "Services",
    "instance": "Instances",
    "endpoint": "Endpoints",
    "address": "Network addresses",
}
OWNED: Final = ("instance", "endpoint")
"""Kinds of which each is of a service."""
KEYWORD_CHARS_MAX: Final = 200
PAGE_ROWS: Final = 50
PAGES_MAX: Final = 200
"""As far as the OAP can be paged, 10,000 rows."""
ID_MAX: Final = 2**31 - 1
_NUMBER = re.compile("[1-9][0-9]*")


@dataclass(frozen=True)
class Lookup:
    """What is looked for, as the address has it. A keyword `#12` is the id 12."""

    kind: str = "service"
    keyword: str = ""
    page: int = 1

    @classmethod
    def of(cls, address: Mapping[str, str]) -> Lookup:
        """What cannot be read is the usual: an address may have been cut or mistyped."""
        kind, page = address.get("kind", ""), address.get("page", "")
        number = int(page) if len(page) < 10 and _NUMBER.fullmatch(page) else 1
        return cls(
            kind if kind in KINDS else cls.kind,
            address.get("keyword", "")[:KEYWORD_CHARS_MAX],
            min(number, PAGES_MAX),
        )

    @property
    def id(self) -> str:
        text = self.keyword.removeprefix("#")
        return text if text != self.keyword and _NUMBER.fullmatch(text) else ""

    @property
    def is_in_vain(self) -> bool:
        """Whether no id can be that high, so that the OAP would not look for it."""
        return bool(self.id) and (len(self.id) > 10 or int(self.id) > ID_MAX)

    def address(self) -> dict[str, str]:
        page = str(self.page) if self.page > 1 else ""
        kind = "" if self.kind == type(self).kind else self.kind
        return {"kind": kind, "keyword": self.keyword, "page": page}

    def asked(self) -> dict[str, str]:
        """As the OAP is asked."""
        found = {"id": self.id} if self.id else {"keyword": self.keyword, "page": str(self.page)}
        return {"kind": self.kind, "size": str(PAGE_ROWS), **found}


@dataclass(frozen=True)
class Entry:
    """`owner` is the service that it is of, or that it turned out to be; `facts` is the rest, in
    words. Times are epoch milliseconds, 0 where none was told."""

    id: int
    name: str
    owner: str
    facts: tuple[str, ...]
    registered_ms: int
    heartbeat_ms: int


@dataclass(frozen=True)
class Entries:
    rows: tuple[Entry, ...]
    more: bool
