"""Dashboards and menus of SkyWalking's own page (up to 10.x), which shows nothing without them.

    shipped      dashboards that come with the program, built anew at each start: General services,
                 meshes, virtual databases, caches and queues, browsers, satellites
    saved        what somebody has saved on the page; it stands in front of what is shipped under
                 the same id, and a disabled one hides it
    menus        the side bar; an item is shown when its layer has services

Contract: every dashboard that is given out has a name, a layer and an entity: the page keys them by
these and fails as a whole on one that has none.
"""

from skyfarer.oap.query.dashboards.resolver import Dashboards, SavedDashboards

__all__ = ["Dashboards", "SavedDashboards"]
