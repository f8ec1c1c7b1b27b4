"""From data sets of many shapes to one mixture of training rows."""
