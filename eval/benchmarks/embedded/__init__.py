"""The embedded world: image questions that plain programs can answer, drawn on the spot from a seed."""
