"""Maps: the calls that were seen at either end become nodes and calls of the query protocol.

    services   the ends of a call are told apart by what each saw, and addresses that have turned
               out to be services become those (`services`)
    instances  of two services, and endpoints: ends and calls as they are stored (`parts`)

Contract: a map is whole or refused; one that nobody could look at (`limits.TOPOLOGY_CALLS_MAX`)
says how to ask for less.
"""

from skyfarer.oap.query.topology.resolver import Topologies

__all__ = ["Topologies"]
