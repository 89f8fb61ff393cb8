"""The rules of trace analysis, one case after the other: segments, and all rows that come of them.

The settings that they hold for: names of 12, 11 and 13 characters, a gateway at `gate:80`, and
`pay:80` known to be the address of instance `pay-1` of service `pay`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skyfarer.oap.pipeline.analysis.traffic.kinds import TAGS_MAX
from skyfarer.oap.pipeline.sources.shapes import UNTOLD
from skyfarer.wire.messages import KeyStringValuePair, SegmentReference, SpanObject

Tags = Mapping[str, str] | Sequence[tuple[str, str]]


def span(type_: str | int, layer: str | int, operation: str, tags: Tags, **more: Any) -> SpanObject:
    pairs = tags.items() if isinstance(tags, Mapping) else tags
    told = [KeyStringValuePair(key=key, value=value) for key, value in pairs]
    fields = {"endTime": 10, "componentId": 1, **more}
    return SpanObject(spanType=type_, spanLayer=layer, operationName=operation, tags=told, **fields)


def entry(layer: str = "Http", tags: Tags = (), operation: str = "/a", **more: Any) -> SpanObject:
    return span("Entry", layer, operation, tags, **more)


def leave(layer: str | int, peer: str, tags: Tags = (), **more: Any) -> SpanObject:
    return span("Exit", layer, "/out", tags, peer=peer, **more)


def local(layer: str = "Unknown", tags: Tags = (), **more: Any) -> SpanObject:
    return span("Local", layer, "work", tags, **more)


def ref(service: str = "web", endpoint: str = "/w", **more: Any) -> SegmentReference:
    told = {"networkAddressUsedAtPeer": "shop:80", "parentServiceInstance": f"{service}-1"}
    return SegmentReference(parentService=service, parentEndpoint=endpoint, **{**told, **more})


@dataclass(frozen=True)
class Case:
    """`rows` as `shown` writes them, with `*` for `call`."""

    spans: Sequence[SpanObject]
    rows: Sequence[str]
    call: str = "10ms ok HTTP"
    service: str = "shop"
    instance: str = "i"


SHOP, SERVER = "shop GENERAL", "SERVER 1 *"
OWN = [f"Service {SHOP} *", f"ServiceInstance {SHOP} i=i *"]
SERVED = [*OWN, f"Endpoint {SHOP} e=/a *"]


def between(service: str, instance: str = "", endpoint: str = "", owner: str = "") -> list[str]:
    """The relations that an entry span tells of; without a name there is none."""
    rows = [f"ServiceRelation {SHOP} < {service} {SERVER}"]
    if instance:
        caller = f"{service} i={instance}"
        rows.append(f"ServiceInstanceRelation {SHOP} i=i < {caller} {SERVER}")
    if endpoint:
        caller = f"{owner or service} e={endpoint}"
        rows.append(f"EndpointRelation {SHOP} e=/a < {caller} {SERVER}")
    return rows


def out(peer: str, instance: str = "", component: int = 1) -> list[str]:
    """The relations that an exit span tells of."""
    client = f"CLIENT {component} *"
    rows = [f"ServiceRelation {peer} < {SHOP} {client}"]
    if instance:
        rows.append(f"ServiceInstanceRelation {peer} i={instance} < {SHOP} i=i {client}")
    return rows


BY_USER = [*SERVED, *between("User UNDEFINED", "User", "User")]
BY_WEB = [*SERVED, *between("web GENERAL", "web-1", "/w")]
ALIAS = "NetworkAddressAliasSetup shop GENERAL i=i e="
OTHER = ref("cart", "/c", networkAddressUsedAtPeer="shop:81")
LOGIC = '{"name": "/logic", "latency": 7, "status": true}'
DATABASE = ["ServiceMeta db:1 VIRTUAL_DATABASE", "DatabaseAccess db:1 VIRTUAL_DATABASE 10ms ok"]
CACHE = "r:1 VIRTUAL_CACHE"
MQ = "mq:1 VIRTUAL_MQ"
LOGICAL = f"Endpoint {SHOP} e=/logic 7ms ok LOGIC"


def consumed(more: str = "", broker: str = MQ) -> list[str]:
    return [f"ServiceMeta {broker}", f"MQAccess {broker} ok Consume{more}"]


TAGGED = "tags and the ends of a call, for metrics that ask"
CASES: dict[str, Case] = {
    TAGGED: Case(
        [
            entry(tags=[(" k\t", " v "), ("k", "1"), ("k", "2"), ("x-le", LOGIC)]),
            leave("Http", "a:1", {"k": "3"}),
            local(tags={"k": "4"}, refs=[ref()]),
        ],
        [
            *(*BY_USER, LOGICAL, *out("a:1 GENERAL", "a:1")),
            *("EndpointMeta web GENERAL e=/w", f"Endpoint {SHOP} e=work 10ms ok"),
            f"EndpointRelation {SHOP} e=work < web GENERAL e=/w SERVER 1 10ms ok",
        ],
    ),
    "a call that nobody says who made is a user's": Case([entry()], BY_USER),
    "of more logic endpoints than are looked at the first ones, each once": Case(
        [entry(tags=[("x-le", LOGIC.replace("7", str(1 + n))) for n in range(TAGS_MAX + 3)])],
        [*BY_USER, *(LOGICAL.replace("7", str(1 + n)) for n in range(TAGS_MAX))],
    ),
    "a failed call is one that took its time": Case([entry(isError=True)], BY_USER, "10ms HTTP"),
    "a database's, a queue's without peer, any other's type": Case(
        [entry("Database"), entry("Unknown"), entry("RPCFramework"), entry("Cache")],
        [
            *(row.replace("*", "10ms ok DATABASE") for row in BY_USER),
            *("ServiceMeta  VIRTUAL_DATABASE", "DatabaseAccess  VIRTUAL_DATABASE 10ms ok"),
            *(BY_USER * 3),
        ],
        "10ms ok RPC",
    ),
    "a call a reference, and an alias of each address": Case(
        [entry(refs=[ref(), OTHER])],
        [
            *(*BY_WEB, f"{ALIAS}shop:80", *SERVED, f"{ALIAS}shop:81"),
            *between("cart GENERAL", "cart-1", "/c"),
        ],
    ),
    "a reference of another thread is a call and no alias": Case(
        [entry(refs=[ref(refType="CrossThread")])], BY_WEB
    ),
    "an endpoint that a reference does not name is a user's": Case(
        [entry(refs=[ref(endpoint="")])],
        [*SERVED, *between("web GENERAL", "web-1", "User"), f"{ALIAS}shop:80"],
    ),
    "without an instance there is no relation of instances": Case(
        [entry(refs=[ref(parentServiceInstance="")])],
        [*SERVED, *between("web GENERAL", "", "/w"), f"{ALIAS}shop:80"],
    ),
    "nor without the span's own": Case(
        [entry(), leave("Http", "a:1")],
        [
            *(f"Service {SHOP} *", f"ServiceInstance {SHOP} *", f"Endpoint {SHOP} e=/a *"),
            *between("User UNDEFINED", "", "User"),
            *out("a:1 GENERAL"),
        ],
        instance="",
    ),
    "an endpoint without a name has no relation": Case(
        [entry(operation="")],
        [*OWN, f"Endpoint {SHOP} *", *between("User UNDEFINED", "User")],
    ),
    "a function is its own endpoint": Case(
        [entry("FAAS", refs=[ref(refType="CrossThread")]), leave("FAAS", "fn")],
        [
            row.replace(SHOP, "shop FAAS")
            for row in [*OWN, *between("web GENERAL", "web-1"), *out("fn FAAS", "fn")]
        ],
        "10ms ok RPC",
    ),
    "a queue stands between, and the endpoint is the producer's": Case(
        [entry("MQ", refs=[ref(networkAddressUsedAtPeer="mq:1")], peer="other:1")],
        [*SERVED, *between(MQ, "mq:1", "/w", "web GENERAL"), *consumed()],
        "10ms ok MQ",
    ),
    "a queue whose producer nobody watches": Case(
        [entry("MQ", peer="mq:1")], [*SERVED, *between(MQ, "mq:1"), *consumed()], "10ms ok MQ"
    ),
    "a queue that is not named at all": Case([entry("MQ", peer=" ")], BY_USER, "10ms ok MQ"),
    "a queue that only the span names, not its reference": Case(
        [entry("MQ", refs=[ref(networkAddressUsedAtPeer=" ")], peer="mq:1")],
        [*SERVED, *between("  VIRTUAL_MQ", " ", "/w", "web GENERAL"), *consumed()],
        "10ms ok MQ",
    ),
    "a gateway stands between, and has no alias": Case(
        [entry(refs=[ref(networkAddressUsedAtPeer="gate:80")])],
        [*SERVED, *between("gate:80 VIRTUAL_GATEWAY", "gate:80", "/w", "web GENERAL")],
    ),
    "a parent of whose service nothing is known is no user": Case(
        [
            entry(refs=[SegmentReference(refType=UNTOLD)]),
            leave("Http", "a:1", refs=[SegmentReference(refType=UNTOLD)]),
            local(refs=[SegmentReference(refType=UNTOLD)]),
        ],
        [*SERVED, *out("a:1 GENERAL", "a:1")],
    ),
    "but the queue that it was sent by is": Case(
        [entry("MQ", refs=[SegmentReference(refType=UNTOLD)], peer="mq:1")],
        [*SERVED, *between(MQ, "mq:1"), *consumed()],
        "10ms ok MQ",
    ),
    "what is not to be analysed is no call, but may be a virtual service's": Case(
        [
            entry("MQ", {"x-le": LOGIC}, refs=[ref(), OTHER], skipAnalysis=True),
            leave("Database", "db:1", refs=[ref()], skipAnalysis=True),
            local("Unknown", {"x-le": LOGIC}, refs=[ref()], skipAnalysis=True),
        ],
        [*consumed(broker="shop:80 VIRTUAL_MQ"), *DATABASE, LOGICAL],
    ),
    "spans of a type and a layer from the future": Case(
        [span(7, "Database", "x", {"x-le": LOGIC}, peer="db:1"), leave(77, "new")],
        out("new UNDEFINED", "new"),
        "10ms ok RPC",
    ),
    "whom an exit span calls": Case(
        [
            *(leave(layer, "a:1") for layer in ("Unknown", "RPCFramework")),
            *(leave("Unknown", ""), leave("Cache", "c:1")),
        ],
        [
            *out("a:1 UNDEFINED", "a:1"),
            *out("a:1 GENERAL", "a:1"),
            *out("c:1 VIRTUAL_CACHE", "c:1"),
        ],
        "10ms ok RPC",
    ),
    "a language model, called by a service and called itself": Case(
        [entry("GenAI"), leave("GenAI", "ai:1")],
        [*BY_USER, *out("ai:1 VIRTUAL_GENAI", "ai:1")],
        "10ms ok GenAI",
    ),
    "an exit span to a gateway, by HTTP": Case(
        [leave("Http", "gate:80"), leave("Http", "gate:81")],
        [*out("gate:80 VIRTUAL_GATEWAY", "gate:80"), *out("gate:81 GENERAL", "gate:81")],
    ),
    "an address that stands for a service": Case(
        [
            leave("Http", "pay:80"),
            leave("Http", "pay:80", componentId=6000),
            leave("Http", "12345678901234x"),
        ],
        [
            *out("pay GENERAL", "pay-1"),
            *out("pay GENERAL", component=6000),
            *out("123456789012 GENERAL", "12345678901"),
        ],
    ),
    "a thread tells of the endpoint that started it": Case(
        [
            local(refs=[ref(refType="CrossThread"), OTHER]),
            leave("Http", "", {"http.status_code": "500", "k": "v"}, refs=[ref()], isError=True),
        ],
        [
            *("EndpointMeta web GENERAL e=/w", f"Endpoint {SHOP} e=work 10ms ok"),
            f"EndpointRelation {SHOP} e=work < web GENERAL e=/w SERVER 1 10ms ok",
            *("EndpointMeta cart GENERAL e=/c", f"Endpoint {SHOP} e=work 10ms ok"),
            f"EndpointRelation {SHOP} e=work < cart GENERAL e=/c SERVER 1 10ms ok",
            *("EndpointMeta web GENERAL e=/w", f"Endpoint {SHOP} e=/out 10ms"),
            f"EndpointRelation {SHOP} e=/out < web GENERAL e=/w SERVER 1 10ms",
        ],
    ),
    "a thread started by a message": Case(
        [local("MQ", refs=[ref(networkAddressUsedAtPeer="mq:1")])],
        [
            *("EndpointMeta web GENERAL e=/w", f"Endpoint {SHOP} e=work 10ms ok"),
            f"EndpointRelation {SHOP} e=work < web GENERAL e=/w SERVER 1 10ms ok",
        ],
    ),
    "the codes of a call": Case(
        [entry(tags={"http.status_code": "404", "rpc.status_code": "NOT_FOUND"})],
        BY_USER,
        "10ms ok 404 NOT_FOUND HTTP",
    ),
    "the last code that is a number counts, by either name": Case(
        [
            entry(tags=[("http.status_code", "1"), ("status_code", "2"), ("status_code", "x")]),
            entry(tags=[("status_code", "1"), ("http.status_code", "+2"), ("rpc.status_code", "")]),
            entry(tags=[("status_code", "2"), *(("status_code", n) for n in ("2147483648", " 3"))]),
        ],
        [
            *(row.replace("*", "10ms ok 2 HTTP") for row in BY_USER * 2),
            *(row.replace("*", "10ms ok 2  HTTP") for row in BY_USER),
        ],
    ),
    "the codes of a call that is made": Case(
        [leave("Http", "a:1", {"http.status_code": "503", "rpc.status_code": "14"}, isError=True)],
        out("a:1 GENERAL", "a:1"),
        "10ms 503 14 HTTP",
    ),
    "names are cut": Case(
        [
            entry(
                operation="/operation-of-some-length",
                tags={"x-le": LOGIC.replace("/logic", "/logic-of-some-length")},
                refs=[ref("a-caller-of-some-length", "/endpoint-of-its", refType="CrossThread")],
            ),
            leave("Database", "peer.of.some.length:1"),
        ],
        [
            *(
                "Service a-service-äö GENERAL *",
                "ServiceInstance a-service-äö GENERAL i=an-inst-äöü *",
            ),
            "Endpoint a-service-äö GENERAL e=/operation-of *",
            "ServiceRelation a-service-äö GENERAL < a-caller-of- GENERAL SERVER 1 *",
            "ServiceInstanceRelation a-service-äö GENERAL i=an-inst-äöü"
            " < a-caller-of- GENERAL i=a-caller-of SERVER 1 *",
            "EndpointRelation a-service-äö GENERAL e=/operation-of"
            " < a-caller-of- GENERAL e=/endpoint-of- SERVER 1 *",
            "Endpoint a-service-äö GENERAL e=/logic-of-som 7ms ok LOGIC",
            "ServiceRelation peer.of.some VIRTUAL_DATABASE < a-service-äö GENERAL CLIENT 1"
            " 10ms ok DATABASE",
            "ServiceInstanceRelation peer.of.some VIRTUAL_DATABASE i=peer.of.som"
            " < a-service-äö GENERAL i=an-inst-äöü CLIENT 1 10ms ok DATABASE",
            "ServiceMeta peer.of.some VIRTUAL_DATABASE",
            "DatabaseAccess peer.of.some VIRTUAL_DATABASE 10ms ok",
        ],
        service="a-service-äöü",
        instance="an-inst-äöüß",
    ),
    "a time beyond 32 bits, and one that ran backwards": Case(
        [leave("Http", "a:1", endTime=2**40), leave("Http", "b:1", endTime=-5)],
        [
            *(row.replace("*", "2147483647ms ok HTTP") for row in out("a:1 GENERAL", "a:1")),
            *(row.replace("*", "-5ms ok HTTP") for row in out("b:1 GENERAL", "b:1")),
        ],
    ),
    "logic endpoints of an entry span": Case(
        [entry(tags=[("x-le", LOGIC), ("x-le", '{"name":"b","latency":"8","status":"FALSE"}')])],
        [*BY_USER, LOGICAL, f"Endpoint {SHOP} e=b 8ms LOGIC"],
    ),
    "logic endpoints are said once, not once a reference": Case(
        [entry(tags={"x-le": LOGIC}, refs=[ref(refType="CrossThread")] * 2)],
        [*BY_WEB, *BY_WEB, LOGICAL],
    ),
    "what says too little of a logic endpoint": Case(
        [
            local(tags=[("x-le", text), ("X-LE", LOGIC)])
            for text in ("", "no json", "[]", "{}", '{"name": "a", "latency": 1}', LOGIC[:-1])
        ]
        + [local(tags={"x-le": LOGIC.replace("7", '"seven"')})]
        + [leave("Http", "", {"x-le": LOGIC})],
        [],
    ),
    "a local span that is a logic endpoint itself": Case(
        [
            local(tags={"x-le": '{"logic-span":true}'}, isError=True),
            entry(tags={"x-le": '{"logic-span":true}'}),
            local(tags={"x-le": LOGIC.replace("{", '{"logic-span":false, ')}),
        ],
        [f"Endpoint {SHOP} e=work 10ms LOGIC", *BY_USER, LOGICAL],
    ),
    "a database, called or used within": Case(
        [leave("Database", "db:1"), local("Database", peer="db:1")],
        [*out("db:1 VIRTUAL_DATABASE", "db:1"), *DATABASE, *DATABASE],
        "10ms ok DATABASE",
    ),
    "a cache, read and written and asked for something else": Case(
        [
            local("Cache", {"cache.type": "R", "cache.op": op}, peer="r:1", isError=op == "read")
            for op in ("read", "write", "del")
        ]
        + [
            local("Cache", [("cache.type", "x"), ("cache.type", "Guava")], peer=" "),
            local("Cache", {"cache.type": " "}, peer="r:1"),
            local("Cache", peer="r:1"),
        ],
        [
            *(f"CacheAccess {CACHE} 10ms Read", f"CacheAccess {CACHE} 10ms ok Write"),
            *(f"CacheAccess {CACHE} 10ms ok Others", *[f"ServiceMeta {CACHE}"] * 3),
            *("ServiceMeta Guava-local VIRTUAL_CACHE",),
            "CacheAccess Guava-local VIRTUAL_CACHE 10ms ok Others",
        ],
    ),
    "a message, sent and received": Case(
        [
            leave("MQ", "mq:1", {"mq.topic": "t", "mq.queue": "q"}, isError=True),
            entry("MQ", {"mq.queue": "q", "transmission.latency": "12"}, peer="mq:1"),
            local("MQ", peer="mq:1"),
        ],
        [
            *(row.replace("*", "10ms MQ") for row in out(MQ, "mq:1")),
            *(f"ServiceMeta {MQ}", f"MQAccess {MQ} Produce"),
            *(f"EndpointMeta {MQ} e=t/q", f"MQEndpointAccess {MQ} e=t/q Produce"),
            *SERVED,
            *between(MQ, "mq:1"),
            *consumed(" late=12"),
            *(f"EndpointMeta {MQ} e=q", f"MQEndpointAccess {MQ} e=q ok Consume late=12"),
        ],
        "10ms ok MQ",
    ),
    "a transmission that took no number": Case(
        [entry("MQ", {"transmission.latency": late}, peer="mq:1") for late in ("", "soon")],
        [*SERVED, *between(MQ, "mq:1"), *consumed()] * 2,
        "10ms ok MQ",
    ),
}
