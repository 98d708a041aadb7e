"""Wires the parts: a plan, its jobs, and what follows from what they found."""
