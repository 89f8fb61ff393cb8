"""Flipped bits in every kind of file, and which records and places they may cost."""

from __future__ import annotations

import struct

from hypothesis import strategies as st
from hypothesis.stateful import rule

from skyfarer.queue.layout import PAGE_BYTES, SLOT_BYTES, decode_segment_header
from skyfarer.testing.faulty_disk import flip

from .histories import CONSUMERS, when
from .stage import Stage

STATE_BYTES = 80
CHECKPOINT_BYTES = 48


class RottingStage(Stage):
    """One bit at a time, and of what is kept twice never both."""

    @when(lambda self: self.reader is not None and any(self.settings.directory.glob("*.seg")))
    @rule(
        file=st.integers(0, 3),
        region=st.sampled_from(["header", "index", "payload"]),
        byte=st.integers(0, 2**14),
        bit=st.integers(0, 7),
    )
    def rot(self, file: int, region: str, byte: int, bit: int) -> None:
        """One bit of one file; of the header's two copies always in the first."""
        if self.state_rotten:
            return
        paths = sorted(self.settings.directory.glob("*.seg"))
        path, shape = paths[file % len(paths)], self.settings.geometry
        data = path.read_bytes()
        entries = list(struct.iter_unpack("<IIIII", data[shape.index]))
        used = max((n + 1 for n, entry in enumerate(entries) if any(entry)), default=0)
        taken = max(start + length for start, length, *_ in entries)
        begin, size = {
            "header": (0, PAGE_BYTES // 2),
            "index": (PAGE_BYTES, min(used + 2, shape.slots) * SLOT_BYTES),
            "payload": (shape.payload_offset, min(taken + 16, shape.payload_bytes)),
        }[region]
        at = begin + byte % size
        flip(path, at, bit)
        header = decode_segment_header(data[:PAGE_BYTES], bytes.fromhex(self.reader.queue_id))
        if header is None:
            return
        for slot, (start, length, *_) in enumerate(entries[:used]):
            number = header.first + slot
            if region == "index" and (at - PAGE_BYTES) // SLOT_BYTES == slot:
                self.model.rotten_entries.add(number)
            in_payload = start <= at - shape.payload_offset < start + length
            if region == "payload" and (in_payload or number in self.model.rotten_entries):
                self.model.rotten_payloads.add(number)

    @when(lambda self: self.reader is not None)
    @rule(
        file=st.sampled_from(["state", "meta", *CONSUMERS]),
        byte=st.integers(0, PAGE_BYTES // 2 - 1),
        bit=st.integers(0, 7),
        slot=st.integers(0, 1),
    )
    def rot_small(self, file: str, byte: int, bit: int, slot: int) -> None:
        """Of a consumer's two slots both may rot: they are two commits."""
        path = self.settings.directory / (f"consumer-{file}" if file in self.names else file)
        if file in self.names:
            byte = slot * PAGE_BYTES + byte % CHECKPOINT_BYTES
        if file == "state":
            byte %= STATE_BYTES
            waiting = {n for n in self.model.rotten() if n >= self.reader.oldest()}
            if waiting or self.state_rotten:
                return
            self.state_rotten, self.given_up = True, self.reader.oldest()
        if (file, byte, bit) in self.flipped and file != "state":
            return
        self.flipped.add((file, byte, bit))
        self.met[f"{'place' if file in self.names else file} rotten"] += 1
        flip(path, byte, bit)
        if file in self.names:
            self.model.rotten_slots[file].add(slot)
