"""Pages of traces: the search, and the waterfall of one."""

from skyfarer.ui.traces.search_page import SearchPage
from skyfarer.ui.traces.trace_page import TracePage

__all__ = ["SearchPage", "TracePage"]
