"""Makes each message of a stream a record that says where it is from.

Agents name the service, the node or the task in the first message of a stream and leave it out of
the later ones. A record stands alone, so what a message leaves out is put before it as the bytes
in which an earlier message said it: protobuf reads two halves of a message as one. Nothing waits
for the end of a stream, which may never come.
"""

from __future__ import annotations

from typing import Final

from skyfarer.base.units import KIB
from skyfarer.wire.split import pick_fields
from skyfarer.wire.status import Status, StatusError

# It is remembered as long as the stream lives, and stands in each of its records.
IDENTITY_BYTES_MAX: Final = 64 * KIB


class Identity:
    """What the messages of one stream have said of their origin so far; fed in order."""

    __slots__ = ("_fields", "_known", "held_bytes")

    def __init__(self, fields: tuple[int, ...]) -> None:
        self._fields = fields
        self._known: dict[int, bytes] = {}
        self.held_bytes = 0

    def complete(self, message: bytes) -> bytes:
        """The message with what it lacks. StatusError when the identity is beyond its bound."""
        fields = self._fields
        found = pick_fields(message, fields, len(fields))
        if found:
            self._learn(found)
        if len(found) == len(fields):
            return message
        known = self._known
        lacking = [known[field] for field in fields if field in known and field not in found]
        return b"".join((*lacking, message)) if lacking else message

    def _learn(self, found: dict[int, bytes]) -> None:
        head = self._fields[0]
        if head in found and found[head] != self._known.get(head):
            self._known = found
        elif found.items() <= self._known.items():
            return
        else:
            self._known.update(found)
        self.held_bytes = sum(map(len, self._known.values()))
        if self.held_bytes > IDENTITY_BYTES_MAX:
            raise StatusError(
                Status.RESOURCE_EXHAUSTED,
                f"identity of {self.held_bytes} bytes exceeds the limit of {IDENTITY_BYTES_MAX}",
            )
