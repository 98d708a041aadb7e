"""Ways to explain a prediction; importing this room registers them all."""

# methods are shown in the order they are registered in
# isort: off
from heedful.methods import attention, one_hot_gradient, leave_one_out, controls

# isort: on
from heedful.methods.base import Method, methods

__all__ = ["Method", "attention", "controls", "leave_one_out", "methods", "one_hot_gradient"]
