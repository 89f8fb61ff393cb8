"""What an upstream means by a status, in the words of the sender's contract."""

from __future__ import annotations

from typing import Final

from skyfarer.base.errors import PermanentError, RetryableError, SkyfarerError
from skyfarer.satellite.contracts import AccessDenied, Unexplained
from skyfarer.wire.status import Status, StatusError

# RESOURCE_EXHAUSTED has two meanings. Overload passes; a message over the upstream's limit does
# not, and would stand in front of all others for ever. Ours, grpc-java's and grpc-go's words.
OVERSIZE: Final = ("exceeds the limit of", "exceeds maximum size", "larger than max")
DENIED: Final = (Status.UNAUTHENTICATED, Status.PERMISSION_DENIED)
UNEXPLAINED: Final = (Status.UNKNOWN, Status.INTERNAL)


def meaning(failure: SkyfarerError) -> SkyfarerError:
    """Of a call that failed; PermanentError stays what it is."""
    if not isinstance(failure, RetryableError):
        return failure
    text, cause = str(failure), failure.__cause__
    status = cause.status if isinstance(cause, StatusError) else None
    if any(words in text for words in OVERSIZE):
        return PermanentError(text)
    if status in DENIED:
        return AccessDenied(text, failure.after_s)
    if status in UNEXPLAINED:
        return Unexplained(text, failure.after_s)
    return failure
