"""Sentences about what checks found."""
