"""Ways in: each receives or fetches, and appends to the queue of its pipe. Never decodes."""
