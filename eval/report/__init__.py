"""The self-contained HTML report of an evaluation: one file, no network, everything foreign escaped."""
