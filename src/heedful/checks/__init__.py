"""Questions put to an explanation; importing this room registers them all."""

# checks are run and shown in the order they are registered in
# isort: off
from heedful.checks import agreement, permutation, adversarial, mechanism, erasure
from heedful.checks import faithfulness
from heedful.checks import plausibility, randomisation, identifiability
from heedful.checks import necessity, seeds, guide, adversary, deception
from heedful.checks import labels, roar, off_manifold

# isort: on
from heedful.checks.base import Check, Findings, FitsData, SeesAll, Tests, checks, usual_checks
from heedful.checks.crowd import Crowd
from heedful.checks.marking import mark
from heedful.checks.retrains import Retrains, Trial

__all__ = [
    "Check",
    "Crowd",
    "Findings",
    "FitsData",
    "Retrains",
    "SeesAll",
    "Tests",
    "Trial",
    "adversarial",
    "adversary",
    "agreement",
    "checks",
    "deception",
    "erasure",
    "faithfulness",
    "guide",
    "identifiability",
    "labels",
    "mark",
    "mechanism",
    "necessity",
    "off_manifold",
    "permutation",
    "plausibility",
    "randomisation",
    "roar",
    "seeds",
    "usual_checks",
]
