"""The embedded provider: DuckDB in the OAP's own process, one file in the data directory."""

from skyfarer.oap.storage.embedded.database import EmbeddedStorage

__all__ = ["EmbeddedStorage"]
