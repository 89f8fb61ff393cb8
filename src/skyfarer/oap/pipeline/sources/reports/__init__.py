"""Messages that are measurements already: each becomes rows of the sources that metrics read.

A message of a JVM, a CLR, a browser, a meter or a mesh is taken apart in whole columns, and the
column `reports` of its row holds what came of it:

    source                        of `core.entities.REPORTED`, or MESHED
    time                          in milliseconds of the epoch
    service, instance, endpoint   whom it speaks of, as the agent wrote them but for a satellite,
                                  whose service has a prefix; layer is a number
    instance_id                   null; of an agent of v2 the id of its instance. Names are empty
                                  then, until the analysis has looked for them (`analysis.v2`)
    from_service, from_instance   of a relation its origin; component and detect_point likewise
    whole_0, …, fraction_0, flag_0, text_0, …   the attributes, in the order of `oal.sources`

Sources share those places, so that one aggregation serves all of them (`slots_of`). What an agent
does not send (threads of an old one) says nothing, where the original has a row of zeros. A meter
without service, instance or time, of its own or of one before it in its collection, says nothing
either.
"""

from skyfarer.oap.pipeline.sources.reports.apart import reports_of
from skyfarer.oap.pipeline.sources.reports.declared import INSTANCE_ID
from skyfarer.oap.pipeline.sources.reports.table import REPORTS, TYPE, slots_of, sources_of

__all__ = ["INSTANCE_ID", "REPORTS", "TYPE", "reports_of", "slots_of", "sources_of"]
