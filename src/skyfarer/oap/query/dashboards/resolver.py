"""The root fields about dashboards and menus."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Final
from uuid import uuid4

from skyfarer.base.clock import Clock
from skyfarer.base.errors import PermanentError
from skyfarer.oap.core.storage import Reader
from skyfarer.oap.core.templates import Template, TemplateTables
from skyfarer.oap.query import limits
from skyfarer.oap.query.dashboards import general, others
from skyfarer.oap.query.dashboards.menus import MENU

View = dict[str, object]

CLOSED: Final = (
    "dashboards are not to be changed here: set query.graphql.enableUpdateUITemplate "
    "(SW_ENABLE_UPDATE_UI_TEMPLATE=true) to allow it"
)
_NEEDED: Final = ("name", "layer", "entity")


@dataclass(frozen=True)
class SavedDashboards:
    """Where they are, if anywhere, and whether somebody may save or disable one."""

    templates: TemplateTables | None = None
    open: bool = False


class Dashboards:
    """Any thread; blocks on storage."""

    def __init__(self, reader: Reader, saved: SavedDashboards, clock: Clock) -> None:
        self._reader = reader
        self._templates = saved.templates
        self._open = saved.open
        self._clock = clock

    def table(self) -> dict[str, Callable[..., object]]:
        return {
            "getMenuItems": self.menu,
            "getAllTemplates": self.all,
            "getTemplate": self.one,
        }

    def changes(self) -> dict[str, Callable[..., object]]:
        return {
            "addTemplate": self.add,
            "changeTemplate": self.change,
            "disableTemplate": self.disable,
        }

    def menu(self) -> list[View]:
        layers = {layer for service in self._reader.services(None) for layer in service.layers}
        return [item.view(layers) for item in MENU]

    def all(self) -> list[View]:
        return [{"id": id, "configuration": text} for id, text in self._shown().items()]

    def one(self, id: str) -> View | None:
        text = self._shown().get(id)
        return None if text is None else {"id": id, "configuration": text}

    def add(self, setting: Mapping[str, str]) -> View:
        return self._save(str(uuid4()), setting["configuration"])

    def change(self, setting: Mapping[str, str]) -> View:
        if setting["id"] not in self._shown():
            return _no(setting["id"], "there is no dashboard of that id")
        return self._save(setting["id"], setting["configuration"])

    def disable(self, id: str) -> View:
        """It stays stored; nobody is shown it."""
        text = self._shown().get(id)
        if text is None:
            return _no(id, "there is no dashboard of that id")
        return self._save(id, text, disabled=True)

    def _shown(self) -> dict[str, str]:
        """By id: the shipped ones first, as somebody has saved them."""
        shown = dict(shipped())
        for saved in self._templates.templates() if self._templates is not None else ():
            if saved.disabled:
                shown.pop(saved.id, None)
            else:
                shown[saved.id] = saved.configuration
        return shown

    def _save(self, id: str, text: str, disabled: bool = False) -> View:
        if self._templates is None or not self._open:
            return _no(id, CLOSED)
        if wrong := problem(text):
            return _no(id, wrong)
        try:
            self._templates.save_template(Template(id, text, self._clock.now_ms(), disabled))
        except PermanentError as error:
            return _no(id, str(error))
        return {"id": id, "status": True, "message": ""}


def _no(id: str, why: str) -> View:
    return {"id": id, "status": False, "message": why}


def problem(text: str) -> str:
    """Why the page could not show it; empty if it can."""
    if len(text) > limits.TEMPLATE_CHARS_MAX:
        return f"a dashboard has at most {limits.TEMPLATE_CHARS_MAX} characters"
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        return "the configuration is not JSON"
    if not isinstance(read, dict):
        return "the configuration is not a JSON object"
    for key in _NEEDED:
        if not isinstance(read.get(key), str) or not read[key].strip():
            return f"the configuration has no {key}"
    return ""


@cache
def shipped() -> Mapping[str, str]:
    """Id → configuration, as text in JSON."""
    made = chain(
        general.dashboards("General", "GENERAL"),
        general.dashboards("Mesh", "MESH"),
        others.dashboards(),
    )
    return {one["id"]: json.dumps(one, separators=(",", ":")) for one in made}
