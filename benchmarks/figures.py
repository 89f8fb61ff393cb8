"""One figure, one JSON line on standard output, and nothing else there."""

from __future__ import annotations

import json


def figure(
    name: str,
    value: float,
    unit: str,
    *,
    at_least: float | None = None,
    at_most: float | None = None,
) -> bool:
    """Prints the figure; `ok` is null where it is given for orientation, without a goal."""
    goal: str | None = None
    ok: bool | None = None
    if at_least is not None:
        goal, ok = f">= {at_least:g}", value >= at_least
    elif at_most is not None:
        goal, ok = f"<= {at_most:g}", value <= at_most
    line = {"figure": name, "value": round(value, 4), "unit": unit, "goal": goal, "ok": ok}
    print(json.dumps(line), flush=True)
    return ok is not False
