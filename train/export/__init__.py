"""Handing a trained policy on: a Hugging Face folder with a card of how it was trained."""
