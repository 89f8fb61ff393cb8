"""`skyfarer oap ttl`: what of a running OAP's data has expired, shown or deleted now."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from skyfarer.cli.columns import columns
from skyfarer.oap.admin.door import ask


def dry_run(directory: Path, force: bool, as_json: bool) -> int:
    """Blocks. Changes nothing."""
    *answers, common = ask(directory, {"ask": "ttl.plan", "force": force})
    models = [answer["model"] for answer in answers]
    if as_json:
        for answer in (*answers, common):
            print(json.dumps(answer))
        return 0
    if models:
        heads = ("model", "kept", "would go", "waits", "stays")
        print("\n".join(columns([heads, *map(_row, models)], left=(0, 1, 2, 3, 4))))
        print()
    print("\n".join(_summary(models, dict(common))))
    return 0


def now(directory: Path, force: bool, as_json: bool) -> int:
    """Blocks. 0 when nothing failed, nothing was refused and it was this node's turn, else 1."""
    *answers, common = ask(directory, {"ask": "ttl.run", "force": force})
    if as_json:
        for answer in (*answers, common):
            print(json.dumps(answer))
    else:
        for answer in answers:
            _tell(dict(answer))
        dropped = sum("dropped" in answer for answer in answers)
        why = f"; {common['why']}" if common["why"] else ""
        print(f"{dropped} tables dropped, {common['left']} expired ones left{why}")
    return 0 if common["outcome"] in ("clean", "dropped") else 1


def _tell(answer: dict[str, Any]) -> None:
    if "dropped" in answer:
        print(f"dropped {answer['dropped']['model']} of {answer['dropped']['day']}")
    else:
        table = answer["failed"]
        print(f"failed  {table['model']} of {table['day']}: {answer['why']}", file=sys.stderr)


def _row(model: dict[str, Any]) -> tuple[str, ...]:
    days = (_span(model[where]) for where in ("goes", "waits", "stays"))
    return (model["model"], model["kept"], *days)


def _span(days: Sequence[int]) -> str:
    if len(days) < 2:
        return str(days[0]) if days else "-"
    return f"{days[0]} to {days[-1]} ({len(days)})"


def _summary(models: Sequence[dict[str, Any]], common: dict[str, Any]) -> list[str]:
    going, waiting = (sum(len(one[where]) for one in models) for where in ("goes", "waits"))
    first = common["first_days"]
    lines = [
        f"today is {common['today']}: records are kept from {first['record']} on,"
        f" metrics from {first['metrics']}",
        f"{going} tables would go with the next run" if going else "nothing has expired",
    ]
    if common["clocks_day"] != common["today"]:
        lines.append(
            f"the clock says {common['clocks_day']}, and there is no data of a day after"
            f" {common['today']}: what has expired by the clock alone waits for it, or for --force"
        )
    if waiting:
        lines.append(f"{waiting} more have expired, and wait for the runs after it, or for --force")
    if going and common["why"]:
        lines.append(f"not by this node: {common['why']}")
    return lines
