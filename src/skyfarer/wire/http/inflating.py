"""What a body's content-encoding says, undone: never more bytes at once than there is room for."""

from __future__ import annotations

import sys
import zlib
from typing import Any, Final

from skyfarer.wire.http.answers import Refused

ACCEPTED: Final = (("accept-encoding", "gzip, deflate, zstd"),)
ACCEPTED_WITHOUT_ZSTD: Final = (("accept-encoding", "gzip, deflate"),)
EXTRA: Final = "pip install 'skyfarer[zstd]'"
# zlib's word for "gzip or deflate, whichever its first bytes are".
_WINDOW_BITS: Final = 47
_PLAIN: Final = ("", "identity")
_DEFLATED: Final = ("gzip", "x-gzip", "deflate")
# 8 MiB, which RFC 8878 would have every reader allow, and which is memory: no frame gets more.
_ZSTD_WINDOW_LOG_MAX: Final = 23


class Inflater:
    """Of one body, fed in order. `whole`: all that was begun has ended, and nothing followed."""

    def __init__(self, decompressor: Any, *errors: type[Exception]) -> None:
        self._decompressor = decompressor
        self._errors = errors

    @property
    def whole(self) -> bool:
        return bool(self._decompressor.eof and not self._decompressor.unused_data)

    def inflate(self, data: bytes, bytes_max: int) -> bytes:
        """Refused for what is not in the encoding. When it is `bytes_max` long there may be more,
        which is lost."""
        try:
            inflated: bytes = self._decompressor.decompress(data, bytes_max)
        except self._errors as error:
            raise Refused(
                400, "the body cannot be inflated as its content-encoding says"
            ) from error
        return inflated


def inflater(encoding: str) -> Inflater | None:
    """None where there is nothing to do; Refused for an encoding that is not known here."""
    if encoding in _PLAIN:
        return None
    if encoding in _DEFLATED:
        return Inflater(zlib.decompressobj(_WINDOW_BITS), zlib.error)
    if encoding == "zstd":
        return _zstd()
    raise Refused(
        415, f"content-encoding {encoding!r} is not known here; use gzip or none", ACCEPTED
    )


def _zstd() -> Inflater:
    """Imported by the first body that needs it: a satellite may do without."""
    try:
        if sys.version_info >= (3, 14):
            from compression import zstd
        else:
            from backports import zstd
    except ModuleNotFoundError as error:
        raise Refused(
            415,
            f"content-encoding 'zstd' needs a module here; install it: {EXTRA}; or use gzip",
            ACCEPTED_WITHOUT_ZSTD,
        ) from error
    bounds = {int(zstd.DecompressionParameter.window_log_max): _ZSTD_WINDOW_LOG_MAX}
    # EOFError: more came behind the end.
    return Inflater(zstd.ZstdDecompressor(options=bounds), zstd.ZstdError, EOFError)
