"""What can be called: experts, two-tier skills and tools, from YAML."""
