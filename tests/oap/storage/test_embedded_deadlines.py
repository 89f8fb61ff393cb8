from __future__ import annotations

import gc
import threading
import weakref

from skyfarer.oap.storage.embedded.deadlines import Deadlines

WAIT_S = 30.0


class Read:
    def __init__(self) -> None:
        self.ended = threading.Event()

    def end(self) -> None:
        self.ended.set()


def test_what_is_late_is_called_off_once_and_what_is_in_time_never() -> None:
    deadlines, late, in_time = Deadlines(), list[str](), list[str]()
    called = threading.Event()
    in_time_too = deadlines.within(10 * WAIT_S, lambda: in_time.append("in time"))
    with deadlines.within(0.05, lambda: (late.append("late"), called.set())), in_time_too:
        assert called.wait(WAIT_S)
    assert (late, in_time) == (["late"], [])


def test_a_shorter_deadline_does_not_wait_for_a_longer_one() -> None:
    deadlines, called = Deadlines(), threading.Event()
    with deadlines.within(10 * WAIT_S, lambda: None), deadlines.within(0.05, called.set):
        assert called.wait(WAIT_S)


def test_many_at_once_are_called_off_each_for_itself() -> None:
    deadlines, reads = Deadlines(), [Read() for _ in range(50)]

    def run(number: int) -> None:
        with deadlines.within(0.05 if number % 2 else 10 * WAIT_S, reads[number].end):
            reads[number | 1].ended.wait(WAIT_S)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
    assert [read.ended.is_set() for read in reads] == [bool(number % 2) for number in range(50)]


def test_there_is_one_thread_and_it_ends_when_nothing_is_under_way() -> None:
    deadlines, others = Deadlines(), set(threading.enumerate())
    watching: set[threading.Thread] = set()
    for _ in range(20):
        with deadlines.within(2.0, lambda: None):
            watching |= set(threading.enumerate()) - others
    (watcher,) = watching
    watcher.join(WAIT_S)
    assert not watcher.is_alive()
    called = threading.Event()
    with deadlines.within(0.05, called.set):
        assert called.wait(WAIT_S), "another thread watches afterwards"


def test_what_was_watched_is_not_kept_open() -> None:
    deadlines, read = Deadlines(), Read()
    known = weakref.ref(read)
    with deadlines.within(10 * WAIT_S, lambda: None):
        with deadlines.within(0.05, read.end):
            assert read.ended.wait(WAIT_S)
        del read
        gc.collect()
        assert known() is None, "while the thread goes on"
