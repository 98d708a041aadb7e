"""Corpora that heedful ships or generates."""
