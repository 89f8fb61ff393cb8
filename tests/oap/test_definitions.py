"""The plan an OAP starts with: shipped definitions, the user's own, and their mistakes."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from skyfarer.base.errors import ConfigError
from skyfarer.oap.boot import definitions
from skyfarer.oap.boot.definitions import FILES_MAX, plan_from
from skyfarer.oap.boot.settings import AnalyzerConfig
from skyfarer.oap.core.entities import ENTITIES
from skyfarer.oap.oal.compiler import shipped
from skyfarer.oap.oal.plan import Plan

ONE = "one_cpm = from(Service.*).cpm();\n"
TWO = "two_cpm = from(Endpoint.*).cpm();\n"


def names(plan: Plan) -> set[str]:
    return {metric.name for source in plan.sources for metric in source.metrics}


def refusal(*own: Path, active: tuple[str, ...] = ()) -> str:
    with pytest.raises(ConfigError) as refused:
        plan_from(active, own)
    return str(refused.value)


@pytest.fixture
def one(tmp_path: Path) -> Path:
    file = tmp_path / "one.oal"
    file.write_text(ONE)
    return file


def test_the_users_metrics_stand_beside_those_of_the_shipped_files(one: Path) -> None:
    plan = plan_from(AnalyzerConfig().oalActiveFiles, [one])

    assert {"one_cpm", "service_cpm", "instance_jvm_cpu"} <= names(plan)
    assert len(plan.sources) == len({source.source for source in plan.sources})


def test_only_the_shipped_files_that_are_named_are_used() -> None:
    assert "service_cpm" in names(plan_from(["core"], []))
    assert "instance_jvm_cpu" not in names(plan_from(["core"], []))
    assert names(plan_from([], [])) == set()


def test_by_default_every_shipped_file_is_used_but_those_of_meshes_and_histograms() -> None:
    every = {text.file.removesuffix(".oal") for text in shipped()}

    assert every - set(AnalyzerConfig().oalActiveFiles) == {"mesh", "histograms"}


def test_a_directory_stands_for_its_files_and_no_file_counts_twice(
    one: Path, tmp_path: Path
) -> None:
    (tmp_path / "two.oal").write_text(TWO)
    (tmp_path / "notes.txt").write_text("not a definition")

    assert names(plan_from([], [tmp_path, one])) == {"one_cpm", "two_cpm"}


def test_a_file_of_the_users_may_disable_a_shipped_metric(tmp_path: Path) -> None:
    file = tmp_path / "fewer.oal"
    file.write_text("disable(service_apdex);")

    assert "service_apdex" not in names(plan_from(["core"], [file]))


def test_mistakes_of_every_file_are_listed_with_their_places(one: Path, tmp_path: Path) -> None:
    two = tmp_path / "two.oal"
    two.write_text(TWO + "service_cpm = from(Service.*).cpm();\nx = from(Servise.*).cpm();\n")
    one.write_text("a = from(Service.latensy).sum();\n")
    heading, *lines = refusal(one, two, active=("core",)).splitlines()

    assert heading == "definitions of metrics have mistakes:"
    assert [line.partition(": ")[0] for line in lines] == [
        f"{one}:1:18",
        f"{two}:2:1",
        f"{two}:3:10",
    ]
    assert "'service_cpm' is defined already, at core.oal:" in lines[1]


def test_a_file_that_cannot_be_had_is_one_sentence(tmp_path: Path) -> None:
    latin = tmp_path / "latin.oal"
    latin.write_bytes(b"// caf\xe9\n")

    absent = tmp_path / "absent.oal"
    assert refusal(absent) == f"{absent} cannot be read: No such file or directory"
    assert refusal(latin) == f"{latin} is not UTF-8; save it as such"
    assert refusal(active=("cor",)) == (
        "agent-analyzer.default: oalActiveFiles names 'cor', which does not come with the program;"
        " did you mean 'core'?"
    )


def test_files_and_metrics_are_bounded(
    one: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(FILES_MAX):
        (tmp_path / f"{number}.oal").touch()

    assert refusal(tmp_path).startswith("agent-analyzer.default: oalFiles are 101 files, more than")
    monkeypatch.setattr(definitions, "METRICS_MAX", 1)
    (tmp_path / "0.oal").write_text(TWO)
    assert refusal(one, tmp_path / "0.oal") == "2 metrics are defined, more than 1"


def test_every_source_that_somebody_fills_has_metrics() -> None:
    plan = plan_from([*AnalyzerConfig().oalActiveFiles, "histograms"], [])

    assert {source.source for source in plan.sources} == set(ENTITIES)


def test_a_start_with_a_mistake_ends_with_code_2_before_a_port_is_taken(
    one: Path, tmp_path: Path
) -> None:
    one.write_text(ONE.replace("cpm()", "cpn()"))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = subprocess.run(
            [sys.executable, "-m", "skyfarer.cli", "oap", "start"],
            env={
                **os.environ,
                "SW_CORE_GRPC_PORT": str(taken.getsockname()[1]),
                "SKYFARER_DATA_DIR": str(tmp_path / "data"),
                "SKYFARER_OAL_FILES": str(tmp_path),
            },
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    assert done.returncode == 2
    assert done.stderr.splitlines()[-2:] == [
        "skyfarer: definitions of metrics have mistakes:",
        f"{one}:1:27: there is no function 'cpn'; did you mean 'cpm'?",
    ]
    assert list((tmp_path / "data").iterdir()) == []
