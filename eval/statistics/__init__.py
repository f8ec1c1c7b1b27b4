"""What the numbers of an evaluation are worth: intervals, paired tests, self-consistency, power. Pure functions."""
