"""Ways to explain a prediction; importing this package registers them all."""

# ruff: noqa: F401 - importing a module registers its methods, listed in this order
# isort: off
from heedful.methods.attention import attention, rollout, vector_based
from heedful.methods.gradient import gradient, integrated_gradients, relevance_propagation
from heedful.methods.erasure import leave_one_out, additive
from heedful.methods import diffmask, baselines

# isort: on
from heedful.methods.base import Method, methods

__all__ = ["Method", "methods"]
