"""What a handler makes of one request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from google.protobuf.message import DecodeError, Message

from skyfarer.base.errors import PermanentError
from skyfarer.oap.core.inventory import Inventory

M = TypeVar("M", bound=Message)


@dataclass(frozen=True)
class Outcome:
    """`payload` is the answer as far as it is known.

    `keep` must be durable in the ingest queue before anything is answered; the request is then
    handled once more. An answer that is not `complete` lacks an id that may be given any moment: it
    may be held back a while, and the request handled again when storage has changed.
    """

    payload: bytes = b""
    keep: tuple[Inventory, ...] = ()
    complete: bool = True


Handler = Callable[[bytes], Outcome]
"""PermanentError for a request that is none. Any other error is storage's, or a defect."""


def decoded(message: M, request: bytes) -> M:
    try:
        message.ParseFromString(request)
    except DecodeError as error:
        name = message.DESCRIPTOR.full_name
        raise PermanentError(f"the request is no {name}: {error}") from error
    return message
