"""Receiving: wire messages become records of the ingest queue, as the bytes they came in.

A receiver is a process of its own that owns one queue (ADR 001), so that Spark's work in the main
process never delays an agent. It must never decode a payload, JSON aside, and never import Spark or
storage.

    process     the receiver itself (`python -m skyfarer.oap.receivers.process`)
    resends     the queue's door: a record that a satellite sends again is kept once
                (`journal` its files, `producers` and `held` what they say:
                docs/formats/producers.md)
    supervisor  the main process's side: starts it, merges its metrics, starts it again
    collecting  what can be posted to the receiver by HTTP, and the server for it
    front       the main process's side: passes on what is posted to its own port
    access      who may report: certificates and tokens
    inner       the Unix socket between the two
    lines       JSON lines between the two: the receiver's end, and
    replies     the main process's
    readmission a parked record that comes back: both ends of its way to the queue
    asking      what the receiver cannot answer: it asks the main process
    answering   the main process's side: who is asked, on which thread, and what waits
    answers/    what is answered
"""
