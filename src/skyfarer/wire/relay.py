"""Passing a call on: the caller gets the answer that the upstream gave.

What a server needs of whoever passes its calls on, and that on top of our client. Both sides are
bounded: an answer by the client's own limit, a conversation by the two flow-control windows, since
a message is only read from one side when the other has taken the one before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from skyfarer.wire.metadata import Metadata as Metadata
from skyfarer.wire.metadata import Pairs
from skyfarer.wire.rpc import BY_PATH, Rpc

if TYPE_CHECKING:
    from skyfarer.wire.client import GrpcClient


class Conversation(Protocol):
    """One call whose messages go both ways. Event loop only; one sender, one receiver."""

    async def send(self, message: bytes) -> None:
        """Returns when the upstream has room for more. StatusError when the call has ended."""

    async def end(self) -> None:
        """Nothing more will be sent. StatusError as `send`."""

    async def receive(self) -> bytes | None:
        """The next answer, None after the last; StatusError when the call failed.

        No more than a flow-control window of answers is held for whoever does not ask.
        """

    def cancel(self) -> None:
        """The call is over, whichever way it stands. Safe twice."""


class Relay(Protocol):
    async def ask(self, rpc: Rpc, message: bytes, metadata: Metadata) -> bytes:
        """The upstream's answer; StatusError with the upstream's status and message otherwise.

        Never takes longer than the metadata allows. Being cancelled cancels the call upstream.
        """

    def converse(self, rpc: Rpc, metadata: Metadata) -> Conversation:
        """Does not wait: what goes wrong is told by the conversation."""


class ClientRelay:
    """A `Relay`. `client` names the upstream of one call, so several may take turns.

    `metadata` is ours, a token for instance: sent where the caller has not sent its own.
    """

    def __init__(
        self, client: Callable[[], GrpcClient], metadata: Callable[[], Pairs] = tuple
    ) -> None:
        self._client = client
        self._metadata = metadata

    async def ask(self, rpc: Rpc, message: bytes, metadata: Metadata) -> bytes:
        whole = metadata.with_defaults(self._metadata())
        return await self._client().ask(_onward(rpc), message, whole)

    def converse(self, rpc: Rpc, metadata: Metadata) -> Conversation:
        whole = metadata.with_defaults(self._metadata())
        return self._client().converse(_onward(rpc), whole)


def _onward(rpc: Rpc) -> Rpc:
    return BY_PATH[rpc.forward_path]
