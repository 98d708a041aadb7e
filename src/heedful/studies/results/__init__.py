"""The results of a study beside the published numbers."""
