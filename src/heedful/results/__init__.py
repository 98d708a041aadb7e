"""What a run keeps, and how it is read and compared."""
