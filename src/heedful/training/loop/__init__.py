"""The training loop: batches, steps, checkpoints, dev scores."""
