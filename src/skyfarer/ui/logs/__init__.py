"""The page of logs."""

from skyfarer.ui.logs.page import LogsPage

__all__ = ["LogsPage"]
