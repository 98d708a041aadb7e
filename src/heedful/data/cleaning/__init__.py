"""Filters and splits, and the presets of the published studies."""
