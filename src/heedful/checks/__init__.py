"""Questions put to an explanation; importing this package registers them all."""

# ruff: noqa: F401 - importing a module registers its check; they run and are listed in this order
# isort: off
from heedful.checks.attention.agreement import check as _agreement
from heedful.checks.attention.permutation import check as _permutation
from heedful.checks.attention.adversarial import check as _adversarial
from heedful.checks.attention.mechanism import check as _mechanism
from heedful.checks.attention.erasure import check as _erasure
from heedful.checks.faithfulness.faithfulness import check as _faithfulness
from heedful.checks.sanity.plausibility import check as _plausibility
from heedful.checks.sanity.randomisation import check as _randomisation
from heedful.checks.attention.identifiability import check as _identifiability
from heedful.checks.retraining.necessity import check as _necessity
from heedful.checks.retraining.seeds import check as _seeds
from heedful.checks.retraining.guide import check as _guide
from heedful.checks.retraining.adversary import check as _adversary
from heedful.checks.retraining.deception import check as _deception
from heedful.checks.sanity.labels import check as _labels
from heedful.checks.retraining.roar import check as _roar
from heedful.checks.retraining.off_manifold import check as _off_manifold

# isort: on
from heedful.checks.base import (
    Check,
    Findings,
    FitsData,
    HasSignificanceTests,
    NeedsAllTexts,
    checks,
    default_checks,
)
from heedful.checks.faithfulness.reference_texts import ReferenceSample
from heedful.checks.retraining.hidden_word_marks import mark_hidden_words
from heedful.checks.retraining_base import RetrainingCheck, RetrainingContext

__all__ = [
    "Check",
    "Findings",
    "FitsData",
    "HasSignificanceTests",
    "NeedsAllTexts",
    "ReferenceSample",
    "RetrainingCheck",
    "RetrainingContext",
    "checks",
    "default_checks",
    "mark_hidden_words",
]
