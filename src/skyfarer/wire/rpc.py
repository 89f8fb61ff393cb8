"""The remote calls we know, as data: what a path carries, how it streams, what becomes of it.

Servers, clients and forwarding read this table and hold no list of their own. Types are named, not
imported, so that a program which only passes bytes along never loads protobuf.
"""

from __future__ import annotations

from collections.abc import Mapping

from skyfarer.wire.foreign import ENVOY, OTLP
from skyfarer.wire.native import COLLECT, COMPAT, REMOTE, V2
from skyfarer.wire.native import V2_TWINS as V2_TWINS
from skyfarer.wire.row import Handling as Handling
from skyfarer.wire.row import Kind as Kind
from skyfarer.wire.row import Rpc as Rpc
from skyfarer.wire.row import Streaming as Streaming

RPCS: tuple[Rpc, ...] = (*COLLECT, *COMPAT, *V2, *OTLP, *ENVOY, *REMOTE)

BY_PATH: Mapping[str, Rpc] = {rpc.path: rpc for rpc in RPCS}

# Kind → the call that sends such a record onward.
FORWARD: Mapping[int, Rpc] = {
    rpc.kind: rpc
    for rpc in (*RPCS, *V2_TWINS)
    if rpc.kind is not Kind.NONE and rpc.path == rpc.forward_path
}
