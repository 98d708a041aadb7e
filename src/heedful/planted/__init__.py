"""The planted benchmark: models whose truth is known."""
