"""`jdbc:postgresql://…` as SkyWalking's users write it → the connection string of libpq.

    jdbc:postgresql://db1:5432,db2:5432/skywalking?sslmode=verify-full&currentSchema=apm

Of the driver's parameters those that mean something here are translated; any other one is an error,
since whoever wrote it counts on it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl, unquote

PREFIX: Final = "jdbc:postgresql://"
PORT: Final = "5432"
_HOST: Final = re.compile(r"(?P<host>\[[0-9a-fA-F:.]+\]|[^:\[\]/?]+)(:(?P<port>[0-9]{1,5}))?\Z")
_SAME: Final = frozenset(("user", "password", "sslmode", "sslcert", "sslkey", "sslrootcert"))
_NAMED: Final = {
    "ApplicationName": "application_name",
    "connectTimeout": "connect_timeout",
    "targetServerType": "target_session_attrs",
}
_SERVERS: Final = {"any": "any", "primary": "read-write", "master": "read-write"}


def conninfo(url: str, user: str, password: str) -> str:
    """What the URL says of user and password comes first. ValueError, without the password, for
    what cannot be understood."""
    parts = {"user": user, "password": password, **_parts(url.strip().strip('"'))}
    if not parts["password"]:
        raise ValueError("dataSource.password has no value: set SW_DATA_SOURCE_PASSWORD")
    if not parts["user"]:
        raise ValueError("dataSource.user has no value: set SW_DATA_SOURCE_USER")
    return " ".join(f"{key}={_quoted(value)}" for key, value in parts.items())


def _parts(url: str) -> dict[str, str]:
    place, _, query = url.removeprefix(PREFIX).partition("?")
    hosts, slash, database = place.partition("/")
    named = [_HOST.match(host) for host in hosts.split(",")]
    if not url.startswith(PREFIX) or not slash or not database or not all(named):
        raise ValueError(f"jdbcUrl must be like {PREFIX}localhost:{PORT}/skywalking")
    found = [one for one in named if one is not None]
    return {
        "host": ",".join(one["host"].strip("[]") for one in found),
        "port": ",".join(one["port"] or PORT for one in found),
        "dbname": unquote(database),
        **_parameters(dict(parse_qsl(query, keep_blank_values=True))),
    }


def _parameters(asked: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for key, value in asked.items():
        if key in _SAME:
            found[key] = value
        elif key == "ssl":
            found["sslmode"] = "verify-full" if value.lower() in ("", "true") else "disable"
        elif key == "currentSchema":
            found["options"] = f"-c search_path={_unspaced(value)}"
        elif key == "targetServerType" and value in _SERVERS:
            found[_NAMED[key]] = _SERVERS[value]
        elif key in _NAMED and key != "targetServerType":
            found[_NAMED[key]] = value
        else:
            told = f"{key}={value}" if key in _NAMED else key  # any other may be a secret
            raise ValueError(f"jdbcUrl has the parameter {told}, which is not known here")
    return found


def _unspaced(value: str) -> str:
    return value.replace("\\", "\\\\").replace(" ", "\\ ")


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
