"""Reading and locking files."""
