"""What every other room of the OAP agrees on: modules, ids, time buckets, layers, contracts.

No I/O, no Spark, no database: values and protocols only, so that a Spark worker can import it for
nothing and a storage provider can be written against it alone.
"""
