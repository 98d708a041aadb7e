"""Checks that retrain the model."""
