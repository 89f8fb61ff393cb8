"""The page of the pipeline: what becomes of every record, and how the node that keeps it is."""

from skyfarer.ui.pipeline.page import PipelinePage

__all__ = ["PipelinePage"]
