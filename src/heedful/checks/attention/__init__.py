"""Checks of the attention weights themselves."""
