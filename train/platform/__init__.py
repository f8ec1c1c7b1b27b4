"""What verl and vLLM need to know to run without an accelerator."""
