from __future__ import annotations

from skyfarer.telemetry.health import Health


def test_the_score_is_minus_one_until_the_program_has_started() -> None:
    health = Health()
    health.set("storage", True)
    assert health.score() == -1

    health.started()
    assert health.score() == 0


def test_the_score_is_the_number_of_unhealthy_parts() -> None:
    health = Health()
    health.started()
    health.set("storage", False, "disk full")
    health.set("receiver", False)
    assert health.score() == 2
    assert health.details() == "receiver; storage: disk full"

    health.set("storage", True)
    health.set("storage", True)
    assert health.score() == 1
    assert health.details() == "receiver"

    health.set("receiver", True)
    assert (health.score(), health.details()) == (0, "")


def test_a_part_that_is_asked_says_how_it_is_at_that_moment() -> None:
    health, wrong = Health(), [""]
    health.ask("timer", lambda: wrong[0])
    health.started()
    assert (health.score(), health.details()) == (0, "")
    wrong[0] = "it stands still"
    assert (health.score(), health.details()) == (1, "timer: it stands still")
    wrong[0] = ""
    assert health.score() == 0
