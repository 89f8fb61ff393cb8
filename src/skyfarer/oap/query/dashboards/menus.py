"""The side bar of SkyWalking's page: what has a dashboard, by what it is."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

View = dict[str, object]


@dataclass(frozen=True)
class Item:
    """Of a layer, or a group of such. `key` is under which the page has its own words for it."""

    title: str
    key: str
    description: str
    layer: str = ""
    icon: str = ""
    items: Sequence[Item] = ()

    def view(self, layers: Collection[str]) -> View:
        """Shown when its layer is among `layers`, or one of its items is."""
        inside = [item.view(layers) for item in self.items]
        return {
            "title": self.title,
            "icon": self.icon,
            "layer": self.layer,
            "activate": any(one["activate"] for one in inside) or self.layer in layers,
            "subItems": inside,
            "description": self.description,
            "documentLink": "",
            "i18nKey": self.key,
        }


MENU: Final = (
    Item(
        "General Service",
        "general_service",
        "Services with agents, and what they talk to.",
        icon="general_service",
        items=(
            Item(
                "Services",
                "general_service_services",
                "Services, their instances and endpoints, by what their agents report.",
                "GENERAL",
            ),
            Item(
                "Virtual Database",
                "general_service_virtual_database",
                "Databases, as the services that use them see them.",
                "VIRTUAL_DATABASE",
            ),
            Item(
                "Virtual Cache",
                "general_service_virtual_cache",
                "Caches, as the services that use them see them.",
                "VIRTUAL_CACHE",
            ),
            Item(
                "Virtual MQ",
                "general_service_virtual_mq",
                "Message queues, as those that produce and consume see them.",
                "VIRTUAL_MQ",
            ),
        ),
    ),
    Item(
        "Service Mesh",
        "service_mesh",
        "Services behind the proxies of a mesh.",
        icon="service_mesh",
        items=(
            Item(
                "Services",
                "service_mesh_service",
                "Services, by what the proxies in front of them report.",
                "MESH",
            ),
        ),
    ),
    Item("Browser", "browser", "Pages, as they are seen in browsers.", "BROWSER", "browser"),
    Item(
        "Self Observability",
        "self_observability",
        "Satellites, by what they report of themselves.",
        icon="self_observability",
        items=(
            Item(
                "Satellite",
                "self_observability_satellite",
                "What satellites receive, keep and send.",
                "SO11Y_SATELLITE",
            ),
        ),
    ),
)
