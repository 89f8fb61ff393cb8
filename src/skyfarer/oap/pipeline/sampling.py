"""Which of a batch's segments are stored.

Whether a trace is sampled follows from its id alone, so all its segments share the answer, on every
node: the id's hash as Java has it, as the original does. It is worked out on the driver, over the
small rows that are there already.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skyfarer.oap.core.sampling import RATE_MAX, Sampling

Numbers = npt.NDArray[np.int64]


def sampled(segments: pa.Table, sampling: Sampling) -> tuple[pa.Table, pa.Table]:
    """Those to store, and those to leave out. Rows have trace_id, service, latency, is_error."""
    if sampling.everything or not segments.num_rows:
        return segments, segments.slice(0, 0)
    chosen = pa.array(_chosen(segments, sampling))
    return segments.filter(chosen), segments.filter(pc.invert(chosen))


def _chosen(segments: pa.Table, sampling: Sampling) -> npt.NDArray[np.bool_]:
    services = segments["service"].combine_chunks().dictionary_encode()
    names, places = services.dictionary.to_pylist(), services.indices.to_numpy()
    rates = np.array([sampling.rate(name) for name in names])[places]
    slow_ms = np.array([sampling.duration_ms(name) for name in names])[places]
    chosen: npt.NDArray[np.bool_] = sample_numbers(segments["trace_id"].to_pylist()) < rates
    chosen |= (slow_ms >= 0) & (segments["latency"].to_numpy() >= slow_ms)
    if sampling.errors:
        chosen |= segments["is_error"].to_numpy()
    return chosen


def sample_numbers(texts: list[str]) -> Numbers:
    """0 … 9,999 of each: the remainder of its hash.

    The sum of its UTF-16 units, each times a power of 31, in 32 bits. The one hash without a
    positive counterpart, which the original always samples, is one like any other here.
    """
    encoded = [text.encode("utf-16-le", "surrogatepass") for text in texts]
    lengths = np.fromiter((len(one) // 2 for one in encoded), np.int64, len(encoded))
    hashes = np.zeros(len(encoded), np.uint32)
    if there := int(lengths.sum()):
        units = np.frombuffer(b"".join(encoded), "<u2").astype(np.uint32)
        ends = np.cumsum(lengths)
        powers = np.full(int(lengths.max()), 31, np.uint32)
        powers[0] = 1
        powers = np.cumprod(powers, dtype=np.uint32)
        products = units * powers[np.repeat(ends, lengths) - 1 - np.arange(there)]
        full = lengths > 0
        hashes[full] = np.add.reduceat(products, (ends - lengths)[full], dtype=np.uint32)
    numbers: Numbers = np.abs(hashes.view(np.int32).astype(np.int64)) % RATE_MAX
    return numbers
