from __future__ import annotations

from typing import Any, Protocol

import pytest

from skyfarer.base.errors import PermanentError
from skyfarer.oap.core.modules import Module, ModuleHolder, Modules, Offer, Provider


class Reader(Protocol):
    def read(self) -> str: ...


class Rows:
    def read(self) -> str:
        return "rows"


class Part(Provider):
    """A provider that writes down what happens to it and fails where it is told to."""

    name = "default"
    config: type[Any] = object

    def __init__(
        self,
        module: str,
        diary: list[str],
        services: tuple[type, ...] = (),
        requires: tuple[str, ...] = (),
        fails: str = "",
    ) -> None:
        self.module = Module(module, services)
        self.requires = requires
        self._diary = diary
        self._fails = fails

    def _note(self, step: str) -> None:
        self._diary.append(f"{step} {self.module.name}")
        if step in self._fails.split():
            raise RuntimeError(f"{self.module.name} cannot {step}")

    def prepare(self, offer: Offer) -> None:
        self._note("prepare")

    def listen(self, modules: ModuleHolder) -> None:
        self._note("listen")

    def start(self, modules: ModuleHolder) -> None:
        self._note("start")

    def after_start(self) -> None:
        self._note("after_start")

    def stop(self, timeout_s: float) -> None:
        self._note("stop")


class Storage(Part):
    def prepare(self, offer: Offer) -> None:
        super().prepare(offer)
        offer(Reader, Rows())


class Query(Part):
    answer = ""

    def start(self, modules: ModuleHolder) -> None:
        super().start(modules)
        self.answer = modules.find("storage").service(Reader).read()


def test_each_step_is_done_for_all_before_the_next_and_stop_is_reversed() -> None:
    diary: list[str] = []
    modules = Modules([Part("core", diary), Part("storage", diary)])
    modules.start()

    assert modules.stop(1) == []
    assert diary == [
        "prepare core",
        "prepare storage",
        "listen core",
        "listen storage",
        "start core",
        "start storage",
        "after_start core",
        "after_start storage",
        "stop storage",
        "stop core",
    ]


def test_a_service_of_a_required_module_is_found_by_its_type() -> None:
    query = Query("query", [], requires=("storage",))
    Modules([Storage("storage", [], (Reader,)), query]).start()

    assert query.answer == "rows"


def test_a_module_that_is_not_required_cannot_be_reached() -> None:
    modules = Modules([Storage("storage", [], (Reader,)), Query("query", [])])

    with pytest.raises(PermanentError) as refused:
        modules.start()

    assert str(refused.value) == "provider 'query.default' does not require module 'storage'"


def test_a_service_that_is_not_promised_is_refused_when_asked_for() -> None:
    class Asking(Part):
        def start(self, modules: ModuleHolder) -> None:
            modules.find("storage").service(int)

    modules = Modules(
        [Storage("storage", [], (Reader,)), Asking("query", [], requires=("storage",))]
    )
    with pytest.raises(PermanentError, match="module 'storage' has no service int"):
        modules.start()


def test_a_promise_that_is_not_kept_names_provider_and_service() -> None:
    diary: list[str] = []
    modules = Modules([Part("core", diary), Part("storage", diary, (Reader,))])

    with pytest.raises(PermanentError) as refused:
        modules.start()

    assert str(refused.value) == "provider 'storage.default' does not offer Reader"
    assert diary[-2:] == ["stop storage", "stop core"]
    assert "start core" not in diary


def test_a_service_that_was_not_promised_is_refused_when_offered() -> None:
    with pytest.raises(PermanentError, match="offers Reader, which its module does not promise"):
        Modules([Storage("storage", [])]).start()


def test_a_service_offered_twice_is_refused() -> None:
    class Twice(Storage):
        def prepare(self, offer: Offer) -> None:
            super().prepare(offer)
            super().prepare(offer)

    with pytest.raises(PermanentError, match=r"provider 'storage\.default' offers Reader twice"):
        Modules([Twice("storage", [], (Reader,))]).start()


@pytest.mark.parametrize(
    ("step", "stopped"),
    [
        ("prepare", ["stop storage", "stop core"]),
        ("listen", ["stop query", "stop storage", "stop core"]),
        ("start", ["stop query", "stop storage", "stop core"]),
        ("after_start", ["stop query", "stop storage", "stop core"]),
    ],
)
def test_a_failing_step_stops_all_that_was_begun(step: str, stopped: list[str]) -> None:
    diary: list[str] = []
    parts = [Part("core", diary), Part("storage", diary, fails=step), Part("query", diary)]

    with pytest.raises(RuntimeError, match=f"storage cannot {step}"):
        Modules(parts).start()

    assert [entry for entry in diary if entry.startswith("stop")] == stopped


def test_every_stop_is_tried_and_the_failures_come_back() -> None:
    diary: list[str] = []
    modules = Modules([Part(name, diary, fails="stop") for name in ("core", "storage", "query")])
    modules.start()

    failures = modules.stop(1)

    assert [str(failure) for failure in failures] == [
        "query cannot stop",
        "storage cannot stop",
        "core cannot stop",
    ]


def test_a_failing_stop_does_not_hide_why_the_start_failed() -> None:
    modules = Modules([Part("core", [], fails="start stop")])

    with pytest.raises(RuntimeError, match="core cannot start"):
        modules.start()


def test_stop_is_safe_twice_and_unstarted() -> None:
    diary: list[str] = []
    modules = Modules([Part("core", diary)])
    assert modules.stop(1) == []
    assert diary == []

    modules.start()
    modules.stop(1)
    modules.stop(1)
    assert diary.count("stop core") == 1


def test_a_provider_may_leave_out_the_steps_it_does_not_need() -> None:
    class Quiet(Provider):
        name = "standalone"
        module = Module("cluster")
        config = object

    modules = Modules([Quiet()])
    modules.start()

    assert modules.stop(1) == []
