"""Filters between the queue and the sender: a linear chain over one event at a time.

Contract: a filter passes, changes or drops an event, and may emit others beside it; whatever it
does, each record of the queue ends as sent or as lost under the reason "filter:<name>". A payload
is decoded once for the whole chain, and only if a filter asks for it.

Must never: import protobuf or a regular expression library before something configured needs it,
do I/O, or run a pattern that a user wrote on an engine without a bound on its time.
"""
