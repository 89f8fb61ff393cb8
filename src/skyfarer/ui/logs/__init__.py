"""The page of logs."""

from skyfarer.ui.logs.model import LogQuestion
from skyfarer.ui.logs.page import LogsPage

__all__ = ["LogQuestion", "LogsPage"]
