"""Sanity checks: random weights, random labels, human rationales."""
