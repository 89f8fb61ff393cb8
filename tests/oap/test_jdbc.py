from __future__ import annotations

import psycopg.conninfo
import pytest

from skyfarer.oap.boot.jdbc import conninfo


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("jdbc:postgresql://db/apm", {"host": "db", "port": "5432", "dbname": "apm"}),
        (
            "jdbc:postgresql://a:1,[::1]:2/my%20db",
            {"host": "a,::1", "port": "1,2", "dbname": "my db"},
        ),
        ("jdbc:postgresql://db/a?ssl=true", {"sslmode": "verify-full"}),
        ("jdbc:postgresql://db/a?sslmode=require&connectTimeout=3", {"sslmode": "require"}),
        ("jdbc:postgresql://db/a?user=u&password=p%27%5C", {"user": "u", "password": "p'\\"}),
        ("jdbc:postgresql://db/a?currentSchema=my apm", {"options": "-c search_path=my\\ apm"}),
        ("jdbc:postgresql://db/a?targetServerType=primary", {"target_session_attrs": "read-write"}),
    ],
)
def test_a_url_of_jdbc_becomes_what_libpq_wants(url: str, expected: dict[str, str]) -> None:
    found = psycopg.conninfo.conninfo_to_dict(conninfo(url, "me", "it's \\ a secret"))
    assert {"user": "me", "password": "it's \\ a secret", **expected}.items() <= found.items()


@pytest.mark.parametrize(
    "url",
    [
        *("", "postgresql://db/a", "jdbc:mysql://db/a", "jdbc:postgresql:a"),
        *("jdbc:postgresql://db", "jdbc:postgresql://db/", "jdbc:postgresql:///a"),
        *("jdbc:postgresql://db:x/a", "jdbc:postgresql://db:1:2/a"),
    ],
)
def test_what_is_no_such_url_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="jdbcUrl must be like jdbc:postgresql://localhost:5432/"):
        conninfo(url, "me", "secret")


@pytest.mark.parametrize(
    ("parameter", "told"),
    [
        ("loadBalanceHosts=true", "loadBalanceHosts"),
        ("targetServerType=secondary", "targetServerType=secondary"),
    ],
)
def test_a_parameter_that_means_nothing_here_is_refused(parameter: str, told: str) -> None:
    with pytest.raises(ValueError, match=f"has the parameter {told}, which is not known"):
        conninfo(f"jdbc:postgresql://db/a?{parameter}", "me", "secret")


def test_a_user_and_a_password_there_must_be() -> None:
    with pytest.raises(ValueError, match=r"dataSource\.user has no value"):
        conninfo("jdbc:postgresql://db/a", "", "secret")
    with pytest.raises(ValueError, match=r"dataSource\.password has no value"):
        conninfo("jdbc:postgresql://db/a", "me", "")
