"""How good it is on benchmarks: rows, runs, metrics, reports."""
