"""Subjects with words deleted or masked, moved embeddings or random weights."""
