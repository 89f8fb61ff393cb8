"""What the driver is told of each record: what it is, and what is stored of it beside its bytes.

The workers find it out, in whole columns of Arrow, while they have a run decoded. It rides through
Spark as bytes that Spark does not look into: the first row of a batch of rows carries the table of
all of them, and the driver puts the tables together (`packing`). So the JVM neither makes these
columns nor keeps them, and what only they need of a message never gets there.

    sequence, part, kind, reason   as the source has them, of every row
    data                           of a part of an export its bytes, which the queue has in no piece
    segment_id, trace_id, service, instance, endpoint, start_time, last_time, latency, is_error,
    tags, slow                     of a segment; of a log, a report or an event what it has of them
    beat_…                         of a sign of life
    updates                        what a mesh says of instances, each once a minute
    log_…, event                   of a log, and of an event, which is rare, all of it

Names are cut to their lengths. Rows with a `reason` are told too, so no number in them may stop the
batch. What speaks in ids (v2) is told once more by the driver, when it has their names (`again`).
"""

from skyfarer.oap.pipeline.told.again import told_again
from skyfarer.oap.pipeline.told.form import TOLD
from skyfarer.oap.pipeline.told.kinds import told_of
from skyfarer.oap.pipeline.told.packing import carried, unpacked
from skyfarer.oap.pipeline.told.telling import Telling

__all__ = ["TOLD", "Telling", "carried", "told_again", "told_of", "unpacked"]
