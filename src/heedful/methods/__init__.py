"""Ways to explain a prediction; importing this room registers them all."""

# methods are shown in the order they are registered in
# isort: off
from heedful.methods import attention, rollout, flow, gradient_rollout, relevance_rollout, blocks
from heedful.methods import effective_attention, decomposed
from heedful.methods import gradient, one_hot_gradient, smoothgrad, integrated_gradients
from heedful.methods import lrp, decompx, leave_one_out, occlusion, lime, kernel_shap, shapley
from heedful.methods import diffmask
from heedful.methods import controls

# isort: on
from heedful.methods.base import Method, methods

__all__ = [
    "Method",
    "attention",
    "blocks",
    "controls",
    "decomposed",
    "decompx",
    "diffmask",
    "effective_attention",
    "flow",
    "gradient",
    "gradient_rollout",
    "integrated_gradients",
    "kernel_shap",
    "leave_one_out",
    "lime",
    "lrp",
    "methods",
    "occlusion",
    "one_hot_gradient",
    "relevance_rollout",
    "rollout",
    "shapley",
    "smoothgrad",
]
