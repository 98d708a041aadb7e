"""Methods that remove or mask words."""
