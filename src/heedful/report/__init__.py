"""Reads records only, never a model."""
