"""What every test shares: a Java that starts quickly, and no hurry for single examples.

Spark's JVM spends half of a start on its second compiler, which pays off only after minutes. Tests
live for seconds, so they leave it out; what is compiled, and what it computes, stays the same.
How long an example of hypothesis takes, to make or to try, says more about the machine than about
us. Its examples are the same in every run: a change is not refused for what it did not touch.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1")
settings.register_profile(
    "house", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("house")
