"""The map: who calls whom, live."""

from skyfarer.ui.map.page import MapPage

__all__ = ["MapPage"]
