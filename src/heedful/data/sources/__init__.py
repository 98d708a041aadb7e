"""Files, folders, the hub and Python objects as rows of text."""
