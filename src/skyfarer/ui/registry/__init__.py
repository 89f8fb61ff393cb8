"""The page of the registry: what agents of the v2 protocol were given which id."""

from skyfarer.ui.registry.model import Lookup
from skyfarer.ui.registry.page import RegistryPage

__all__ = ["Lookup", "RegistryPage"]
