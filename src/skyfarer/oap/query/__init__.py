"""The query room: SkyWalking's GraphQL protocol over HTTP, answered from storage.

Contract: the schema (`schema/*.graphqls`) has the original's names, arguments and nullability, so
that the SkyWalking UI and `swctl` work unchanged. All times are in the server's time zone. What a
client can send is bounded (`limits`), and a bad request gets one clear sentence in `errors`; an
expression that cannot be evaluated says so in its own `error` field, because a GraphQL error would
take the other widgets of the same request down with it.

Must never: write to storage (but for a dashboard or a profile task that somebody saves), block the
event loop (documents are executed in worker threads), or show a client the text of an unexpected
failure.
"""

from skyfarer.oap.query.server import QueryServer

__all__ = ["QueryServer"]
