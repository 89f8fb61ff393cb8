"""Decoders that do to their process what native code may do: each at a record that holds the word
of its name, and else they decode as ptars does. They are named to a reading as `module:class`."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from typing import ClassVar, NoReturn

import pyarrow as pa

from skyfarer.base.units import MIB
from skyfarer.oap.pipeline.sources.decode import PtarsDecoder


class _Rogue(PtarsDecoder):
    word: ClassVar[bytes]

    def decode_all(self, payloads: pa.BinaryArray) -> pa.RecordBatch:
        if any(self.word in one.as_buffer().to_pybytes() for one in payloads):
            self.rage()
        return super().decode_all(payloads)

    def rage(self) -> None:
        raise NotImplementedError


class Aborting(_Rogue):
    word = b"abort"

    def rage(self) -> NoReturn:
        os.abort()


class Crashing(_Rogue):
    word = b"crash"

    def rage(self) -> None:
        """A segmentation fault, without the report that faulthandler would make of it."""
        signal.signal(signal.SIGSEGV, signal.SIG_DFL)
        ctypes.string_at(0)


class Looping(_Rogue):
    word = b"loop"

    def rage(self) -> None:
        while True:
            pass


class Hungry(_Rogue):
    """Native code ends its process where memory is refused."""

    word = b"hungry"

    def rage(self) -> None:
        kept = []
        try:
            while True:
                kept.append(b"\1" * MIB)
        except MemoryError:
            os.abort()


class Greedy(_Rogue):
    """Python raises an error where memory is refused."""

    word = b"greedy"

    def rage(self) -> None:
        kept = []
        while True:
            kept.append(b"\1" * MIB)


class Hidden(_Rogue):
    """Its process ends where a worker of Spark's decodes, and nowhere else."""

    word = b"hidden"

    def rage(self) -> None:
        if "pyspark" in sys.modules:
            os.kill(os.getpid(), signal.SIGKILL)


class Choosy(_Rogue):
    word = b"choosy"

    def rage(self) -> NoReturn:
        raise RuntimeError("a decoder that likes other records")


def named(rogue: type[_Rogue]) -> str:
    return f"{rogue.__module__}:{rogue.__name__}"
