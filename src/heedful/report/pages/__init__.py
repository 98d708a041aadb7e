"""Whole pages: HTML, Markdown, model cards."""
