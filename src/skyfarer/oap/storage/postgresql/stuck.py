"""Sessions that stand still in the middle of a statement, and hold what others wait for.

The server itself ends a transaction that does nothing, and one whose client's machine answers no
more. In a COPY it waits for its client for ever, as long as that machine answers: no timeout of
PostgreSQL counts while it waits there. So a process that was stopped in one would keep its locks
from all nodes; every node looks for such sessions, its own among them, and ends them.
"""

from __future__ import annotations

import logging
from typing import Final

from skyfarer.oap.storage.postgresql.copying import Cursor

_END: Final = """SELECT count(*) FILTER (WHERE pg_terminate_backend(pid)) FROM pg_stat_activity
    WHERE datname = current_database() AND usename = current_user AND pid <> pg_backend_pid()
    AND application_name = current_setting('application_name')
    AND state = 'active' AND wait_event_type = 'Client'
    AND state_change < clock_timestamp() - make_interval(secs => %s)"""
log = logging.getLogger(__name__)


def end_stuck(cursor: Cursor, after_s: float) -> None:
    """Those of this program that wait for their client, in a statement that began so long ago."""
    ((count,),) = cursor.execute(_END, [after_s]).fetchall()
    if count:
        text = "%d connections of OAPs stood still in a statement for %g s and were ended"
        log.warning(text, count, after_s)
