"""The observability analysis platform: receivers, pipeline, storage, query.

Data flows one way: receivers → ingest queue → pipeline (Spark) → storage → query. Nothing in
this room is imported by the satellite.
"""
