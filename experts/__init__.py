"""How an expert is called: pool, clients, tools, procedures, images, embedded programs."""
