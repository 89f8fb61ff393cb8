"""What Kafka reported of the records of one batch, and what that means for the sender."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from skyfarer.base.errors import PermanentError, RetryableError, SkyfarerError
from skyfarer.satellite.contracts import AccessDenied, Batch, Unexplained
from skyfarer.satellite.senders.topics import Value

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

# Codes of the protocol. The same bytes are refused for ever: MESSAGE_TOO_LARGE,
# RECORD_LIST_TOO_LARGE, INVALID_TIMESTAMP, INVALID_RECORD.
_REFUSALS: Final = frozenset({10, 18, 32, 87})
# Authorisation of topic, group, cluster or transaction, and authentication by SASL; below 0 the
# library's own names for authentication and for a certificate that is not believed.
_DENIALS: Final = frozenset({29, 30, 31, 53, 58, -169, -181})

_UNKNOWN: Final = -1


class Reports:
    """Filled by the thread that waits for them, read by the event loop when it has waited."""

    def __init__(self, batch: Batch) -> None:
        self._of = _name(batch)
        self.done: list[Value] = []
        self.failures: list[KafkaError] = []
        self.awaited = 0

    def is_of(self, batch: Batch) -> bool:
        """Whether this batch has come back, and not another one or a part of it."""
        return self._of == _name(batch)

    def add(self, value: Value, error: KafkaError | None) -> None:
        if error is None:
            self.done.append(value)
        else:
            self.failures.append(error)
        self.awaited -= 1

    def fatal(self) -> bool:
        """The producer is of no use any more: its numbering does not fit the broker's."""
        return any(error.fatal() for error in self.failures)


def failure_of(errors: Sequence[KafkaError], address: str) -> SkyfarerError:
    """A refusal before what may pass: the sender shall find the refused record."""
    for error in errors:
        if error.code() in _REFUSALS:
            return PermanentError(f"Kafka at {address}: {error.str()}")
    for error in errors:
        if error.code() in _DENIALS:
            return AccessDenied(f"Kafka at {address}: {error.str()}")
    text = f"Kafka at {address}: {errors[0].str()}"
    return Unexplained(text) if errors[0].code() == _UNKNOWN else RetryableError(text)


def _name(batch: Batch) -> tuple[object, ...]:
    return batch.first, batch.kind, len(batch.payloads), batch.end, batch.emitted
