"""Agentic benchmarks: what lets their own harnesses drive the orchestrator through `maestro serve`."""
