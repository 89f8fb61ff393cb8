"""What the map asks of the OAP: the calls of a time, and what was counted of them lately."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from skyfarer.ui.api import OapClient
from skyfarer.ui.map.model import Call, Map, Node, Vital
from skyfarer.ui.model import ServerTime
from skyfarer.ui.window import Window

NODES_MAX = 100
CALLS_MAX = 200
PARTS_A_QUESTION = 60
LATEST_POINTS = 2
_MAP = """query map($duration: Duration!) {
  getGlobalTopology(duration: $duration) {
    nodes { id name type isReal }
    calls { id source target detectPoints }
  }
}"""
_SERVICE = ("service_cpm", "service_resp_time", "service_sla")
_RELATION = ("cpm", "resp_time", "call_sla")

Part = tuple[Mapping[str, Any], Sequence[str]]
"""An entity and its three metrics."""


async def whole_map(client: OapClient, time: ServerTime, window: Window) -> Map:
    found = await client.graphql(_MAP, {"duration": window.duration(time)})
    topology = found["getGlobalTopology"]
    nodes = sorted(map(_node, topology["nodes"]), key=lambda node: node.name)
    shown = {node.id: node for node in nodes[:NODES_MAX]}
    calls = [_call(one) for one in topology["calls"]]
    calls = [one for one in calls if one.source in shown and one.target in shown][:CALLS_MAX]
    parts = [_of_node(node) for node in shown.values()] + [_of_call(one, shown) for one in calls]
    vitals = await _vitals(client, time, parts)
    return Map(
        tuple(replace(n, vital=v) for n, v in zip(shown.values(), vitals, strict=False)),
        tuple(replace(c, vital=v) for c, v in zip(calls, vitals[len(shown) :], strict=True)),
        hidden=len(nodes) - len(shown),
    )


async def _vitals(client: OapClient, time: ServerTime, parts: Sequence[Part]) -> list[Vital]:
    vitals = list[Vital]()
    for start in range(0, len(parts), PARTS_A_QUESTION):
        some = parts[start : start + PARTS_A_QUESTION]
        entities = {f"e{number}": entity for number, (entity, _) in enumerate(some)}
        variables = {"duration": time.duration(LATEST_POINTS), **entities}
        data = await client.graphql(_document(some), variables)
        vitals += [_vital(data, number) for number in range(len(some))]
    return vitals


def _document(parts: Sequence[Part]) -> str:
    variables = "".join(f", $e{number}: Entity!" for number in range(len(parts)))
    fields = [
        f'm{number}_{place}: execExpression(expression: "{metric}", entity: $e{number},'
        " duration: $duration) { results { values { value } } }"
        for number, (_, metrics) in enumerate(parts)
        for place, metric in enumerate(metrics)
    ]
    return f"query vitals($duration: Duration!{variables}) {{ {' '.join(fields)} }}"


def _vital(data: Mapping[str, Any], number: int) -> Vital:
    return Vital(*(_latest(data[f"m{number}_{place}"]) for place in range(3)))


def _latest(result: Mapping[str, Any]) -> int | None:
    """Of the last full minute; of the one in progress while there is no other."""
    values = [v["value"] for series in result["results"][:1] for v in series["values"]]
    told = [int(value) for value in values if value is not None]
    return told[0] if told else None


def _node(found: Mapping[str, Any]) -> Node:
    return Node(found["id"], found["name"], found["type"] or "", found["isReal"])


def _call(found: Mapping[str, Any]) -> Call:
    at_server = "SERVER" in found["detectPoints"]
    return Call(found["id"], found["source"], found["target"], at_server)


def _of_node(node: Node) -> Part:
    return {"serviceName": node.name, "normal": node.is_real}, _SERVICE


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
