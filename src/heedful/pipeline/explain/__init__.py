"""Explaining a text or a data set."""
