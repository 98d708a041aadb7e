"""Arithmetic on tensors."""
