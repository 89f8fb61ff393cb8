"""What goes and gets data instead of waiting for it: log files, Prometheus targets.

A fetcher feeds the queue of its pipe and is that queue's only appender. It keeps up with a full
queue by waiting: what it has not appended is still where it found it.
"""
