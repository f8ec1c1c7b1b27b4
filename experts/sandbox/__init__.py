"""Running Python that nobody has read: limits, isolation, and what came of it."""
