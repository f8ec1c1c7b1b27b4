"""The paper's Tables 1, 2 and 6 to 11, filled from finished run folders."""
