"""How it learns: data, cold start, GRPO on verl."""
