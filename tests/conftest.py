"""What every test shares: a Java that starts quickly.

Spark's JVM spends half of a start on its second compiler, which pays off only after minutes. Tests
live for seconds, so they leave it out; what is compiled, and what it computes, stays the same.
"""

from __future__ import annotations

import os

os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1")
