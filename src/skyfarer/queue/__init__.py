"""The durable queue: a ring of preallocated segment files between one writer and its readers.

For: being the only buffer of a program. A receiver appends, any process maps the same files and
reads them, and each named consumer keeps its own place in its own file.

Contract, whatever happens to the process (bytes and argument: `docs/formats/queue.md`):

- what `Writer.append` returned for is there after a SIGKILL, byte for byte, once, in order;
- records are numbered from 0 without a gap, so a number names a record for ever, and
  accepted = delivered + queued + dropped{reason} follows from numbers alone:
  accepted = `writing`, queued = `writing` - `committed`, dropped is stored beside `committed`,
  delivered is the rest;
- `Reader.runs(start, end)` answers for every number of the range exactly once: a record, or a
  damaged one, or a lost one with its reason;
- bytes that were never appended are never handed out: a checksum binds each record to its
  segment, its number, its place and its kind.

The loop of a consumer is therefore the same everywhere:

    for run in reader.runs(consumer.committed(), reader.writing()):
        deliver(run.kinds(), run.payloads())
        consumer.commit(run.end, run.dropped)

The room must never: look into a payload, block on the network, grow beyond `capacity_bytes`, write
with a store into a map what it has not first preallocated, or reuse a number.
"""
