"""The two words for failure, and the one for a wrong configuration.

    SkyfarerError
      RetryableError     the same call may succeed later: keep the data and wait
      PermanentError     the same call will never succeed: count it, drop or park it, go on
        ConfigError      what the user wrote is wrong: one sentence, before anything starts

An error that is neither is a defect of ours and is left to travel as it is.
"""

from __future__ import annotations


class SkyfarerError(Exception):
    """Everything this program raises on purpose; its text is a sentence for an operator."""


class RetryableError(SkyfarerError):
    """`after_s` is how long the other side asked us to wait, if it said so."""

    def __init__(self, message: str, after_s: float | None = None) -> None:
        super().__init__(message)
        self.after_s = after_s


class PermanentError(SkyfarerError):
    """Trying again changes nothing."""


class ConfigError(PermanentError):
    """A command answers it with its text on standard error and exit code 2."""
