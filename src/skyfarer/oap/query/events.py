"""The root field about events, from the protocol's arguments to its shapes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from skyfarer.oap.core.events import EventCondition, EventReader, StoredEvent
from skyfarer.oap.query import conditions, limits
from skyfarer.oap.query.durations import Duration
from skyfarer.oap.query.errors import QueryError
from skyfarer.oap.query.traces.span import View, name, text

_TYPES: Final = ("Normal", "Error")


class Events:
    """Any thread; blocks on storage."""

    def __init__(self, reader: EventReader) -> None:
        self._reader = reader

    def table(self) -> dict[str, Callable[..., object]]:
        return {"queryEvents": self.page}

    def page(self, condition: Mapping[str, Any] | None = None) -> View:
        if condition is None:
            raise QueryError("the condition is missing")
        offset, limit = conditions.page(_paging(condition), "events")
        asked, newest_first = _condition(condition), condition.get("order") != "ASC"
        found = self._reader.events(asked, newest_first, offset, limit) if limit else []
        return {"events": [_view(event) for event in found]}


def _paging(condition: Mapping[str, Any]) -> Mapping[str, int | None]:
    """Clients before 9.1 ask for a `size`."""
    size = condition.get("size")
    page = {"pageSize": limits.EVENTS_PAGE if size is None else size}
    return condition.get("paging") or page


def _condition(condition: Mapping[str, Any]) -> EventCondition:
    uuid, duration = condition.get("uuid") or None, condition.get("time")
    if uuid is None and duration is None:
        raise QueryError("the condition needs a uuid or a time")
    source, kind = condition.get("source") or {}, condition.get("type")
    return EventCondition(
        between=None if duration is None else Duration.of(duration).seconds,
        uuid=uuid,
        service=source.get("service") or None,
        instance=source.get("serviceInstance") or None,
        endpoint=source.get("endpoint") or None,
        name=condition.get("name") or None,
        type=None if kind is None else _TYPES.index(kind),
        layer=condition.get("layer") or None,
    )


def _view(event: StoredEvent) -> View:
    return {
        "uuid": event.uuid,
        "source": {
            "service": name(event.service),
            "serviceInstance": name(event.instance),
            "endpoint": name(event.endpoint),
        },
        "name": name(event.name),
        "type": _TYPES[event.type == 1],  # a number that nobody knows is no error
        "message": event.message,
        "parameters": [{"key": name(k), "value": text(v)} for k, v in event.parameters],
        "startTime": event.start_time,
        "endTime": event.end_time,
        "layer": event.layer,
    }
