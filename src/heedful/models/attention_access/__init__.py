"""Reading and replacing the attention of any transformer."""
