"""Serving a registry's models with vLLM: placing them on GPUs, starting, probing and restarting them."""
