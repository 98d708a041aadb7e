"""Ways to change attention; importing this package registers them all."""

from heedful.checks.interventions import (  # noqa: F401 - registers them
    certified_optimum,
    gradient_search,
    leverage,
    lp_ascent,
    nullspace,
    simple,
)
from heedful.checks.interventions.base import Intervention, interventions

__all__ = ["Intervention", "interventions"]
