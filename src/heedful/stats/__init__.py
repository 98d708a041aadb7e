"""Pure arithmetic over numpy arrays: intervals, p-values, corrections, scores; no torch."""
