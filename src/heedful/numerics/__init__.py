"""Pure arithmetic: tensors and statistics; no models, no files, no state."""
