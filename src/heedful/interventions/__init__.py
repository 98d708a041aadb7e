"""Ways to disturb attention; importing this room registers them all."""

from heedful.interventions import ascent, exact, leverage, nullspace, search, simple
from heedful.interventions.base import Intervention, interventions

__all__ = [
    "Intervention",
    "ascent",
    "exact",
    "interventions",
    "leverage",
    "nullspace",
    "search",
    "simple",
]
