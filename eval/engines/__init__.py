"""Ways to run the shards of one evaluation at once."""
