"""Pure arithmetic over torch tensors: no model, no device, no state."""
