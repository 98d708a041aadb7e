"""Ways to explain a prediction; importing this room registers them all."""

from heedful.methods import attention, controls, leave_one_out, one_hot_gradient
from heedful.methods.base import Method, methods

__all__ = ["Method", "attention", "controls", "leave_one_out", "methods", "one_hot_gradient"]
