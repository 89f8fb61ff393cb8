"""The PostgreSQL provider: one database, which several OAPs may share."""

from skyfarer.oap.storage.postgresql.database import PostgresStorage

__all__ = ["PostgresStorage"]
