"""Methods that read attention weights."""
