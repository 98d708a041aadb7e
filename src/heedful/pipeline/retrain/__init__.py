"""Retraining the variants that checks ask for."""
