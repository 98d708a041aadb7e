"""Questions about an explanation; importing this package registers their descriptions, no torch."""

from heedful.checks.attention.adversarial.spec import SPEC as ADVERSARIAL
from heedful.checks.attention.agreement.spec import SPEC as AGREEMENT
from heedful.checks.attention.erasure.spec import SPEC as ERASURE
from heedful.checks.attention.identifiability.spec import SPEC as IDENTIFIABILITY
from heedful.checks.attention.mechanism.spec import SPEC as MECHANISM
from heedful.checks.attention.permutation.spec import SPEC as PERMUTATION
from heedful.checks.faithfulness.spec import SPEC as FAITHFULNESS
from heedful.checks.influence.spec import SPEC as INFLUENCE
from heedful.checks.registry import checks, default_checks
from heedful.checks.retraining.adversary.spec import SPEC as ADVERSARY
from heedful.checks.retraining.deception.spec import SPEC as DECEPTION
from heedful.checks.retraining.guide.spec import SPEC as GUIDE
from heedful.checks.retraining.necessity.spec import SPEC as NECESSITY
from heedful.checks.retraining.off_manifold.spec import SPEC as OFF_MANIFOLD
from heedful.checks.retraining.roar.spec import SPEC as ROAR
from heedful.checks.retraining.seeds.spec import SPEC as SEEDS
from heedful.checks.sanity.labels.spec import SPEC as LABELS
from heedful.checks.sanity.plausibility.spec import SPEC as PLAUSIBILITY
from heedful.checks.sanity.randomisation.spec import SPEC as RANDOMISATION
from heedful.checks.spec import CheckSpec, Measure

BUILT_IN = (  # in the order in which they run and are shown
    *(INFLUENCE, AGREEMENT, PERMUTATION, ADVERSARIAL, MECHANISM, ERASURE, FAITHFULNESS),
    *(PLAUSIBILITY, RANDOMISATION, IDENTIFIABILITY),
    *(NECESSITY, SEEDS, GUIDE, ADVERSARY, DECEPTION, LABELS, ROAR, OFF_MANIFOLD),
)
for _spec in BUILT_IN:
    checks.add(_spec)

__all__ = ["CheckSpec", "Measure", "checks", "default_checks"]
