"""Trained cases of the planted benchmark: small networks, trained from a seed.

The truth of a kind follows from its task and architecture. Each training is tested for it by
bounds that use none of the checks; one that breaks a bound is discarded, counted (`redrawn`) and
repeated with other draws. The same seed gives the same weights on the same machine and version of
torch.
"""
