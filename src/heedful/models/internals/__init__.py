"""What happens inside a transformer's layers."""
