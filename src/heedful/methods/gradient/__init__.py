"""Methods that propagate gradients or relevance."""
