"""Skyfarer: application performance monitoring that loses nothing and counts nothing twice."""

__version__ = "0.1.0"
