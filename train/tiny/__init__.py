"""The tiny Qwen3-VL of the embedded tier: tokenizer, weights and processor made on the spot."""
