"""The results of a study, compared with the published numbers."""
