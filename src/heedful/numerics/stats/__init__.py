"""Intervals, tests and scores on NumPy arrays; no torch."""
