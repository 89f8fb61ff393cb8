"""Streams: every kind of thing that is stored, declared.

    declaration   what a stream, a column, an index and a model are
    inventories   names that agents of the v2 protocol have registered
    records       segments, logs, events, slow statements, tags, and what is kept as it came
    metrics       metrics of the sources, relations, traffic, aliases
    management    what somebody has told the program to keep
    catalog       all of them, and what follows of all: models, and how long they are kept

SkyWalking finds its streams by scanning classes for `@Stream(name, scope, builder, processor)` and
`@Column`. Here they are rows of tables that nothing fills at import time, so a Spark worker sees
the same ones as the program. A storage provider makes its tables from their models: it spells types
its own way, makes those indexes that pay in its database, and may have columns and tables of its
own beside what is declared. What it keeps its own books in (offsets, leases, parked records) is no
stream.
"""
