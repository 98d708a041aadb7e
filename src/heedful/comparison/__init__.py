"""Runs, or methods of one run, held side by side. Reads records only; no torch."""
