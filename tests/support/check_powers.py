"""Powers by hand: checks that are always right, or as often as said."""

from benchmarks.power_row import make_power_row

from heedful.checks import checks
from heedful.numerics.stats.detection_skill import KnownTruthAnswers
from heedful.pipeline.verdict.check_power import AuditSetting, PowerTable

WHERE = AuditSetting("recurrent", 20.0, 100)
LIKE = {"architecture": "recurrent", "words": 20, "texts": 10}
VOTERS = tuple((vote.claim, spec.name) for spec in checks.specs() for vote in spec.votes)


def row(claim, check, right=30, wrong=0, undecided=0, **like):
    """A row of the table where both truths were told right, wrong and not at all so often."""
    said = (1,) * right + (-1,) * wrong + (0,) * undecided
    kinds = {
        "yes": KnownTruthAnswers(True, said),
        "no": KnownTruthAnswers(False, tuple(-one for one in said)),
    }
    return make_power_row(claim, check, {**LIKE, **like}, kinds, None)


def trusted(*rows, where=WHERE):
    """Everybody is an oracle, save those who have a row of their own."""
    own = {(one["claim"], one["check"]) for one in rows}
    others = [row(claim, check) for claim, check in VOTERS if (claim, check) not in own]
    return PowerTable(where, (*rows, *others))
