"""The one failure a client of the query protocol can cause."""

from __future__ import annotations

from skyfarer.base.errors import PermanentError


class QueryError(PermanentError):
    """The request cannot be answered as it stands; its text is written for the one who sent it."""
