"""What the map asks of the OAP: the calls of a time, and what was counted of them at its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from skyfarer.ui.api import OapClient
from skyfarer.ui.kinds import GENERAL, kind_of
from skyfarer.ui.map.model import Call, Map, Node, Vital
from skyfarer.ui.model import Series, ServerTime, Service
from skyfarer.ui.window import Buckets, Window

NODES_MAX = 100
CALLS_MAX = 200
PARTS_A_QUESTION = 60
LATEST_POINTS = 2
_MAP = """query map($duration: Duration!) {
  getGlobalTopology(duration: $duration) {
    nodes { id name type isReal layers }
    calls { id source target detectPoints }
  }
}"""
_RELATION = ("cpm", "resp_time", "call_sla")

Part = tuple[Mapping[str, Any], Sequence[str]]
"""An entity and its three metrics."""


async def whole_map(client: OapClient, time: ServerTime, window: Window) -> Map:
    buckets = window.buckets(time)
    found = await client.graphql(_MAP, {"duration": buckets.duration()})
    topology = found["getGlobalTopology"]
    nodes = sorted(map(_node, topology["nodes"]), key=lambda node: node.name)
    shown = {node.id: node for node in nodes[:NODES_MAX]}
    calls = [_call(one) for one in topology["calls"]]
    calls = [one for one in calls if one.source in shown and one.target in shown]
    drawn = calls[:CALLS_MAX]
    measured = {node.id: _of_node(node) for node in shown.values() if _is_measured(node)}
    parts = {**measured, **{call.id: _of_call(call, shown) for call in drawn}}
    vitals = dict(zip(parts, await _vitals(client, buckets, [*parts.values()]), strict=True))
    return Map(
        tuple(replace(one, vital=_told(one, vitals)) for one in shown.values()),
        tuple(replace(one, vital=vitals[one.id]) for one in drawn),
        hidden=len(nodes) - len(shown),
        hidden_calls=len(calls) - len(drawn),
        step=buckets.step.lower(),
        nobody=not nodes and not await client.services(),
    )


async def _vitals(client: OapClient, buckets: Buckets, parts: Sequence[Part]) -> list[Vital]:
    vitals = list[Vital]()
    for start in range(0, len(parts), PARTS_A_QUESTION):
        some = parts[start : start + PARTS_A_QUESTION]
        entities = {f"e{number}": entity for number, (entity, _) in enumerate(some)}
        variables = {"duration": buckets.duration(LATEST_POINTS), **entities}
        data = await client.graphql(_document(some), variables)
        vitals += [_vital(data, number, buckets.growing) for number in range(len(some))]
    return vitals


def _told(node: Node, vitals: Mapping[str, Vital]) -> Vital | None:
    """An address without figures is not silent: nobody measures it."""
    vital = vitals.get(node.id)
    is_address = not node.has_agent and kind_of(_service(node)) is GENERAL
    return None if vital == Vital() and is_address else vital


def _document(parts: Sequence[Part]) -> str:
    variables = "".join(f", $e{number}: Entity!" for number in range(len(parts)))
    fields = [
        f'm{number}_{place}: execExpression(expression: "{metric}", entity: $e{number},'
        " duration: $duration) { results { values { value } } }"
        for number, (_, metrics) in enumerate(parts)
        for place, metric in enumerate(metrics)
    ]
    return f"query vitals($duration: Duration!{variables}) {{ {' '.join(fields)} }}"


def _vital(data: Mapping[str, Any], number: int, growing: bool) -> Vital:
    return Vital(*(_latest(data[f"m{number}_{place}"], growing) for place in range(3)))


def _latest(result: Mapping[str, Any], growing: bool) -> int | None:
    values = [v["value"] for series in result["results"][:1] for v in series["values"]]
    told = Series(tuple(None if one is None else int(one) for one in values), growing).current
    return None if told is None else int(told)


def _node(found: Mapping[str, Any]) -> Node:
    layers = tuple(found["layers"])
    return Node(found["id"], found["name"], found["type"] or "", found["isReal"], layers=layers)


def _call(found: Mapping[str, Any]) -> Call:
    at_server = "SERVER" in found["detectPoints"]
    return Call(found["id"], found["source"], found["target"], at_server)


def _is_measured(node: Node) -> bool:
    """Users, and addresses that nobody answered for, are not."""
    return node.is_real or kind_of(_service(node)) is not GENERAL


def _of_node(node: Node) -> Part:
    kind = kind_of(_service(node))
    entity = {"serviceName": node.name, "normal": node.is_real}
    return entity, (kind.cpm, kind.resp_time, kind.sla)


def _service(node: Node) -> Service:
    return Service(node.id, node.name, node.is_real, node.layers)


def _of_call(call: Call, nodes: Mapping[str, Node]) -> Part:
    source, target = nodes[call.source], nodes[call.target]
    entity = {
        "serviceName": source.name,
        "normal": source.is_real,
        "destServiceName": target.name,
        "destNormal": target.is_real,
    }
    side = "server" if call.at_server else "client"
    return entity, [f"service_relation_{side}_{metric}" for metric in _RELATION]
