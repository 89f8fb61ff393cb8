"""Sets, renames and removes tags: of every span of a segment, of logs, the labels of meters."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Literal

from skyfarer.satellite.contracts import OnFailure, Verdict
from skyfarer.satellite.processors.decoding import require_decoding
from skyfarer.satellite.processors.event import Context, Event
from skyfarer.satellite.processors.globs import Globs
from skyfarer.satellite.processors.places import LOGS, METERS, PROPERTIES, SPANS, tag_lists

EDITS_MAX: Final = 100
IDLE_MAX: Final = 1000  # keys remembered as those that nothing is done to
_KINDS: Final = {"spans": SPANS, "logs": LOGS, "meters": METERS, "properties": PROPERTIES}


@dataclass(frozen=True)
class TagEditorConfig:
    """First `remove`, then `rename`, then `set`, on each span, log or meter by itself."""

    remove: tuple[str, ...] = ()  # keys, with * and ?
    rename: dict[str, str] = field(default_factory=dict)  # old key: new key
    set: dict[str, str] = field(default_factory=dict)  # key: value, in place of any other value
    records: tuple[Literal["spans", "logs", "meters", "properties"], ...] = (
        "spans",
        "logs",
        "meters",
    )
    on_failure: OnFailure = "pass"  # what becomes of a record that cannot be read

    def __post_init__(self) -> None:
        edits = (*self.remove, *self.rename, *self.rename.values(), *self.set)
        if not edits or not all(edits):
            raise ValueError("one of remove, rename and set must be given, and no key be empty")
        if len(edits) > EDITS_MAX:
            raise ValueError(f"at most {EDITS_MAX} keys can be edited")


class TagEditor:
    """A `Filter`. A record in which nothing changes keeps its bytes."""

    config_type: ClassVar = TagEditorConfig

    def __init__(self, config: TagEditorConfig) -> None:
        require_decoding("tag-editor")
        self.on_failure = config.on_failure
        self._kinds = frozenset(kind for name in config.records for kind in _KINDS[name])
        self._remove = Globs(config.remove) if config.remove else None
        self._rename = config.rename
        self._set = config.set
        self._idle: set[str] = set()

    def verdict(self, kind: int) -> Verdict:
        return Verdict.LOOK if kind in self._kinds else Verdict.PASS

    def apply(self, event: Event, context: Context) -> bool:
        for tags, key in tag_lists(event.kind, event.message):
            if self._edit(tags, key):
                event.changed()
        return True

    def _edit(self, tags: Any, key: str) -> bool:
        """In place, since most tags stay what they are."""
        changed, doomed, missing = False, [], dict(self._set)
        for position, tag in enumerate(tags):
            name = getattr(tag, key)
            if name in self._idle:
                continue
            if self._remove is not None and self._remove.match(name):
                doomed.append(position)
            elif (new := self._rename.get(name, name)) in missing:
                value = missing.pop(new)
                changed = changed or (name, tag.value) != (new, value)
                setattr(tag, key, new)
                tag.value = value
            elif new in self._set:
                doomed.append(position)
            elif new != name:
                setattr(tag, key, new)
                changed = True
            elif len(self._idle) < IDLE_MAX:
                self._idle.add(name)
        for position in reversed(doomed):
            del tags[position]
        for name, value in missing.items():
            tags.add(**{key: name, "value": value})
        return changed or bool(doomed or missing)
