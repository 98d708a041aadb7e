"""Which check bears on which claim, by which figure, and by which rules: one table.

What a check is worth as a witness on a claim is not said here: that is measured (`power`).
"""

from collections.abc import Callable
from dataclasses import dataclass

from heedful.core.records import Claim, Estimate, Vote
from heedful.pipeline.verdict.batch_rules import BATCH_RULES, LEVERAGE_RULES, rank_estimate
from heedful.pipeline.verdict.evidence import NO_PLACE, Evidence, VoteRule, apply_rules
from heedful.pipeline.verdict.retraining_rules import RETRAINING_RULES, SWAP_RULES

Figure = Callable[[Evidence], Estimate]
Line = Callable[[Evidence], float]


@dataclass(frozen=True)
class ClaimEvidence:
    """A check as a witness on a claim.

    `shares` names the evidence it rests on: of several witnesses who rest on the same, one is
    heard. `figure` is what its rules hold against `line`, and `falls` says that a lower figure
    speaks for the claim.
    """

    claim: Claim
    check: str
    shares: str
    figure: Figure
    line: Line
    rules: tuple[VoteRule, ...]
    falls: bool = False

    def vote(self, evidence: Evidence) -> tuple[Vote, str]:
        """What it says, and why."""
        return apply_rules(self.rules, evidence)

    def score(self, evidence: Evidence) -> float:
        """Its figure, higher where it speaks for the claim."""
        value = self.figure(evidence).value
        return -value if self.falls else value


def _of(check: str, measure: str) -> Figure:
    return lambda e: e.of(check, measure)


def _placed(check: str) -> Figure:
    return lambda e: e.places.get(check, NO_PLACE).place


def _drift(e: Evidence) -> Estimate:
    return (e.drift or NO_PLACE).place


def _epsilon(e: Evidence) -> float:
    return e.epsilon


def _halfway(e: Evidence) -> float:
    return e.halfway


def _margin(check: str) -> Line:
    return lambda e: float(getattr(e.checks[check], "margin", 0.0))


BATCH, ANEW = BATCH_RULES, RETRAINING_RULES
REACHED = _of("adversarial", "of_bound")
CLAIM_TABLE: tuple[ClaimEvidence, ...] = (
    ClaimEvidence("used", "permutation", "other weights", _of("permutation", "median_tvd"), _epsilon,
            BATCH["permutation"]),
    ClaimEvidence("used", "necessity", "equal weights", _of("necessity", "uniform_swap_tvd"), _epsilon,
            SWAP_RULES),
    ClaimEvidence("used", "adversarial", "distant weights", REACHED, _halfway, BATCH["adversarial"],
            falls=True),
    ClaimEvidence("needed", "necessity", "retraining", _of("necessity", "gain"), _margin("necessity"),
            ANEW["necessity"]),
    ClaimEvidence("ranks", "agreement", "deletion", rank_estimate, _halfway, BATCH["agreement"]),
    ClaimEvidence("ranks", "faithfulness", "deletion", _placed("faithfulness"), _halfway,
            BATCH["faithfulness"]),
    ClaimEvidence("ranks", "erasure", "weights removed", _placed("erasure"), _halfway, BATCH["erasure"]),
    ClaimEvidence("ranks", "adversarial", "distant weights", REACHED, _halfway, BATCH["adversarial"],
            falls=True),
    ClaimEvidence("exclusive", "adversarial", "distant weights", REACHED, _halfway,
            BATCH["adversarial"], falls=True),
    ClaimEvidence("exclusive", "permutation", "other weights", _of("permutation", "leverage"), _epsilon,
            LEVERAGE_RULES),
    ClaimEvidence("robust", "seeds", "seeds", _drift, _halfway, ANEW["seeds"], falls=True),
    ClaimEvidence("robust", "deception", "deception", _of("deception", "score_lost"),
            _margin("deception"), ANEW["deception"]),
)  # fmt: skip


def checks_on_claim(claim: str) -> tuple[ClaimEvidence, ...]:
    """Who bears on a claim."""
    return tuple(one for one in CLAIM_TABLE if one.claim == claim)
