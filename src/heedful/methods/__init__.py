"""Ways to explain a prediction; importing this package registers them all."""

# ruff: noqa: F401 - importing a module registers its methods, listed in this order
# isort: off
from heedful.methods.attention import attention, rollout, flow, gradient_rollout
from heedful.methods.attention import relevance_rollout, block_methods
from heedful.methods.attention import effective_attention, decomposed
from heedful.methods.gradient import gradient, one_hot_gradient, smoothgrad, integrated_gradients
from heedful.methods.gradient import lrp, decompx
from heedful.methods.erasure import leave_one_out, occlusion, lime, kernel_shap, shapley
from heedful.methods import diffmask, baselines

# isort: on
from heedful.methods.base import Method, methods

__all__ = ["Method", "methods"]
