"""Questions put to an explanation; importing this room registers them all."""

# checks are run and shown in the order they are registered in
# isort: off
from heedful.checks import agreement, permutation, adversarial, mechanism, erasure

# isort: on
from heedful.checks.base import Check, Findings, SeesAll, checks

__all__ = [
    "Check",
    "Findings",
    "SeesAll",
    "adversarial",
    "agreement",
    "checks",
    "erasure",
    "mechanism",
    "permutation",
]
