"""Dashboards that somebody has saved on SkyWalking's page: its configuration, which is JSON, by id.

A provider may store them anywhere that outlives the program; nodes that share a storage share them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

TEMPLATES_MAX: Final = 1_000


@dataclass(frozen=True)
class Template:
    """A disabled one is not shown, nor what is shipped under its id."""

    id: str
    configuration: str
    updated_ms: int
    disabled: bool = False


class TemplateTables(Protocol):
    """Any thread; may block on storage."""

    def templates(self) -> list[Template]:
        """All that were saved, disabled ones too, in the order in which each was first saved."""

    def save_template(self, template: Template) -> None:
        """In the place of what was saved under its id; durable on return. PermanentError when
        there are TEMPLATES_MAX others."""
