"""Ways to fit a subject to data."""
