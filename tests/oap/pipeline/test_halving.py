"""Bisection finds each place at fault, keeps the rest in order, and hides nothing else."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyfarer.oap.pipeline.sources.halving import REASON_CHARS_MAX, halved


class PanicError(BaseException):
    """As a panic of Rust arrives."""


@given(st.integers(0, 70), st.sets(st.integers(0, 69)))
def test_halved_names_every_fault_and_keeps_the_others_in_order(
    count: int, faults: set[int]
) -> None:
    def work(start: int, end: int) -> list[int]:
        if bad := faults & set(range(start, end)):
            raise PanicError(min(bad))
        return list(range(start, end))

    done, bad = halved(count, work)
    here = {n for n in faults if n < count}
    assert bad == {n: f"PanicError: {n}" for n in here}
    assert [n for _, part in done for n in part] == [n for n in range(count) if n not in here]
    assert all(part[0] == start for start, part in done)


def test_work_that_succeeds_is_called_once() -> None:
    calls = list[tuple[int, int]]()
    halved(1000, lambda *stretch: calls.append(stretch))
    assert calls == [(0, 1000)]


def test_reason_of_a_value_error_is_its_text_and_has_a_bound() -> None:
    def work(start: int, end: int) -> None:
        raise ValueError("x" * 1000)

    assert halved(1, work)[1] == {0: "x" * REASON_CHARS_MAX}


@pytest.mark.parametrize("end", [KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError])
def test_the_end_of_a_process_and_a_lack_of_memory_are_no_fault_of_a_record(
    end: type[BaseException],
) -> None:
    def work(start: int, stop: int) -> None:
        raise end

    with pytest.raises(end):
        halved(4, work)


def test_native_code_reports_its_first_fault_and_is_then_silent(
    capfd: pytest.CaptureFixture[str],
) -> None:
    def work(start: int, end: int) -> None:
        os.write(2, b"panicked\n")
        raise PanicError

    halved(100, work)
    os.write(2, b"after\n")
    assert capfd.readouterr().err == "panicked\nafter\n"
