"""Where micro-batches come from. Spark's workers import this room: it stays light."""
