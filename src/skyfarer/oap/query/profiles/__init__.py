"""Profiles of slow requests: tasks for agents, the requests they sampled, trees of their stacks.

    snapshots   stacks as agents sent them, kept as they came, and found by the minute they came in
    sampled     the requests that they are of
    stacks      trees made of them

Contract: what is read is bounded (`limits`), and where a bound was met the answer's `tip` says so.
A snapshot that cannot be read is left out. The one thing that is written is a task that somebody
creates; agents are told of it as of any other (`oap.core.told`).
"""

from skyfarer.oap.query.profiles.resolver import Profiles

__all__ = ["Profiles"]
