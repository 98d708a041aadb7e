"""Retrained variants of a model: other seeds, adversaries, masked words."""
