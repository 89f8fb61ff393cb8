"""Coverage-guided fuzz of the native decoder: `make soak`, not a part of `make test`.

libFuzzer drives `ptars-core`, the Rust crate inside the wheel of ptars, in the version that we use.
It is built from its source with the counters of libFuzzer and AddressSanitizer in it, so that the
guidance follows the native code. The wheel has no such counters; it gets every input that libFuzzer
found worth keeping at the end, through the whole of `rows`. Python's code is not guided.

The inputs to begin with are specimens and hostile messages. libFuzzer's own mutations know nothing
of the grammar; they compare with what the code compares with. A panic is no finding, since the
analysis survives it: the place is printed. A signal, an address error, a loop and memory without
end are findings. Needs cargo, and fetches crates the first time.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from random import Random
from typing import Final

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

from oap.pipeline.bench import NOON
from oap.pipeline.laced import Record, faults_of, outcome_of, rows_of
from skyfarer.oap.pipeline.sources.decode import DECODERS
from skyfarer.oap.pipeline.sources.rows import EXPORTS
from skyfarer.oap.pipeline.sources.shapes import (
    LOG_RECORD,
    SHAPES,
    SPAN,
    UPSTREAM_SEGMENT,
    V2_SEGMENT,
    Shape,
    trimmed,
)
from skyfarer.testing.mutations import Mutator
from skyfarer.testing.specimens import Specimens
from skyfarer.wire.rpc import Kind
from skyfarer.wire.split import framed, split_repeated

SECONDS = int(os.environ.get("SKYFARER_GUIDED_SECONDS", "600"))
SEED = int(os.environ.get("SKYFARER_SEED", "20"))
SEEDS_OF_A_SHAPE, SEED_BYTES_MAX = 40, 4_000
BATCH: Final = 4_000
CRATE: Final = Path(__file__).parent / "native_fuzz"
BUILT: Final = Path(__file__).parents[4] / ".cache" / "native_fuzz"
TARGET: Final = "x86_64-unknown-linux-gnu"
FLAGS: Final = (
    *("--cfg", "fuzzing", "-Zsanitizer=address", "-Cpasses=sancov-module"),
    *(
        f"-Cllvm-args=-sanitizer-coverage-{what}"
        for what in ("level=4", "inline-8bit-counters", "pc-table", "trace-compares")
    ),
)
"""As cargo-fuzz has them."""
KINDS: Final[tuple[tuple[int, Shape], ...]] = (
    *((kind, shape) for kind, shape in SHAPES.items() if kind not in EXPORTS),
    (Kind.V2_SEGMENT, UPSTREAM_SEGMENT),
    (Kind.OTLP_TRACES, SPAN),
    (Kind.OTLP_LOGS, LOG_RECORD),
)
"""By the first byte of an input: which shape it is decoded by, and which kind has that shape."""


def built() -> Path:
    """The program; skipped where there is no cargo."""
    if shutil.which("cargo") is None:
        pytest.skip("cargo is not installed: the native decoder is not fuzzed")
    environ = {
        **os.environ,
        "CARGO_TARGET_DIR": str(BUILT),
        "CARGO_ENCODED_RUSTFLAGS": "\x1f".join(FLAGS),
        "RUSTC_BOOTSTRAP": "1",  # sanitizers are not stable
    }
    build = ["cargo", "build", "--quiet", "--release", "--target", TARGET]
    subprocess.run(build, cwd=CRATE, env=environ, check=True)
    return BUILT / TARGET / "release" / "native-fuzz"


def write_shapes(directory: Path) -> None:
    directory.mkdir()
    for number, (_, shape) in enumerate(KINDS):
        descriptor, file = trimmed(shape), FileDescriptorProto()
        descriptor.file.CopyToProto(file)
        path = directory / f"{number}.pb"
        path.write_bytes(FileDescriptorSet(file=[file]).SerializeToString())
        path.with_suffix(".name").write_text(descriptor.full_name)


def write_seeds(directory: Path, random: Random) -> None:
    """Each a byte for its shape, and a payload."""
    directory.mkdir()
    specimens = Specimens(random, NOON)
    for number, (kind, shape) in enumerate(KINDS):
        few = [specimens.of(kind) for _ in range(3)]
        mutator = Mutator(random, few)
        mutated = (mutator.message()[1] for _ in range(SEEDS_OF_A_SHAPE))
        for at, payload in enumerate([*(one.payload for one in few), *mutated]):
            for part in _parts(kind, shape, payload):
                if len(part) <= SEED_BYTES_MAX:
                    (directory / f"{number}-{at}").write_bytes(bytes([number]) + part)


def _parts(kind: int, shape: Shape, payload: bytes) -> list[bytes]:
    """Returns the parts of a message that the shape decodes: the resources of an export, the
    segment in an upstream segment, else the whole message."""
    if shape in (SPAN, LOG_RECORD):
        return (split_repeated(payload, 1) or [])[:1]
    if shape is V2_SEGMENT:
        return (split_repeated(payload, 2) or [])[:1]
    return [payload]


def record_of(found: bytes) -> Record:
    kind, shape = KINDS[found[0] % len(KINDS)]
    payload = found[1:]
    if shape in (SPAN, LOG_RECORD):
        payload = framed(1, payload)
    elif shape is V2_SEGMENT:
        payload = framed(2, payload)
    return Record(False, kind, payload)


@pytest.mark.timeout(0)
def test_native_decoder_survives_what_its_own_coverage_leads_to(tmp_path: Path) -> None:
    program, corpus = built(), tmp_path / "corpus"
    write_shapes(tmp_path / "shapes")
    write_seeds(corpus, Random(SEED))
    begun = len(list(corpus.iterdir()))
    options = ("-max_len=8192", "-timeout=20", "-rss_limit_mb=2048", "-use_value_profile=1")
    limits = (f"-max_total_time={SECONDS}", f"-seed={SEED}", f"-artifact_prefix={tmp_path}/found-")
    log = tmp_path / "log"
    with log.open("w") as output:
        ended = subprocess.run(
            [program, *options, *limits, corpus],
            env={**os.environ, "SHAPES": str(tmp_path / "shapes")},
            stderr=output,
            check=False,
        )
    said = log.read_text(errors="replace")
    print(*sorted(set(re.findall(r"PANIC at .*", said))), *said.splitlines()[-1:], sep="\n")
    artifacts = [f"{one.name}: {one.read_bytes().hex()}" for one in tmp_path.glob("found-*")]
    assert ended.returncode == 0, "\n".join([*artifacts, said[-8_000:]])
    inputs = [one.read_bytes() for one in sorted(corpus.iterdir())]
    print(f"{len(inputs) - begun} inputs of new coverage, beside {begun}", flush=True)
    for first in range(0, len(inputs), BATCH):
        sent = [record_of(found) for found in inputs[first : first + BATCH] if found]
        for decoder in DECODERS:
            assert faults_of(sent, outcome_of(rows_of(sent, decoder))) == []
