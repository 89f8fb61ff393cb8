"""The sidecar: takes what agents send, keeps it on disk, hands it to the OAP, loses nothing.

    agents ─▶ gatherer ─▶ queue (files of this pipe) ─▶ filters ─▶ sender ─▶ OAP
              answers after the append                commits after the answer

Contract: a call is answered only when its bytes are in the queue's files, so they survive a killed
process; a record leaves the queue only when the upstream took it, or when it is dropped under a
named reason. accepted = delivered + queued + dropped{reason}, to the record, across crashes.

Must never: import the OAP, Spark, Arrow or a database; import protobuf or decode a payload unless a
filter is configured that must, or JSON came in; poll; let memory grow with the length of an outage.
Idle it stays within 30 MB.
"""
