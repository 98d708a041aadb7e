"""Sections of the pages."""
