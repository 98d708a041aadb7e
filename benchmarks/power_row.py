"""A row of the table of powers, `power.json`."""

from collections.abc import Mapping
from typing import Any

from heedful.core.records import Estimate
from heedful.numerics.stats.detection_skill import KnownTruthAnswers


def make_power_row(
    claim: str,
    check: str,
    like: Mapping[str, Any],
    kinds: Mapping[str, KnownTruthAnswers],
    auc: Estimate | None,
) -> dict[str, Any]:
    """A row of the table: answers by kind, as they were given."""
    return {
        "claim": claim,
        "check": check,
        **like,
        "auc": auc and [round(one, 4) for one in (auc.value, auc.low, auc.high)],
        "kinds": {
            name: [one.truth, *(sum(a == b for a in one.answers) for b in (1, -1, 0))]
            for name, one in kinds.items()
        },
    }
