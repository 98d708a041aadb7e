"""The claims of the debate, each with the checks that bear on it and their leading figures."""

from collections.abc import Mapping
from dataclasses import dataclass

from heedful.core.records import CheckResult, Estimate, Verdict
from heedful.report.measure_labels import QUESTIONS, Meaning, meaning_of
from heedful.report.sections.check_power import describe_check_power
from heedful.report.terminal.verdict_card import CLAIM_WORDS
from heedful.results.run_records import sanitise_text

MOST = 2  # figures of a check that is not known here
LEADING = {
    "agreement": ("tau_leave_one_out", "tau_shuffled_leave_one_out", "tau_gradient_leave_one_out"),
    "permutation": ("median_tvd", "leverage"),
    "adversarial": ("of_bound", "nullspace_jsd"),
    "mechanism": ("tau_weighting", "tau_mixing"),
    "necessity": ("gain",),
    "seeds": ("jsd_seeds", "jsd_shuffled"),
    "guide": ("base_minus_uniform",),
    "adversary": ("jsd", "tvd"),
    "deception": ("mass_before", "mass_after", "score_lost"),
    "erasure": ("flip_top", "flip_random"),
    "off_manifold": ("beyond_random_attention", "comprehensiveness_random", "same_prediction"),
    "roar": ("beyond_random_attention", "score_random", "score_whole"),
    "faithfulness": ("beyond_random_attention", "comprehensiveness_random"),
}
# a check may bear on a second claim by one of its figures; its answer is on the first
ASIDE = {
    ("used", "necessity"): ("uniform_swap_tvd",),
    ("used", "adversarial"): ("of_bound",),
    ("ranks", "adversarial"): ("of_bound",),
    ("exclusive", "permutation"): ("leverage",),
}


@dataclass(frozen=True, slots=True)
class LeadingFigure:
    """One estimate and how to read it."""

    name: str
    meaning: Meaning
    estimate: Estimate


@dataclass(frozen=True, slots=True)
class EvidenceRow:
    """A check that bears on a claim; `answer` is empty where the check answers another one."""

    check: str
    question: str
    answer: str
    figures: tuple[LeadingFigure, ...]
    missing: str
    power: str = ""


@dataclass(frozen=True, slots=True)
class ClaimRow:
    """One claim of the debate, what was found about it, and by which checks."""

    name: str
    words: str
    answer: str
    why: str
    bearing: tuple[EvidenceRow, ...]


def build_claims(verdict: Verdict) -> tuple[ClaimRow, ...]:
    """Every claim, in order."""
    return tuple(
        ClaimRow(
            sanitise_text(name),
            CLAIM_WORDS.get(name, sanitise_text(name)),
            claim.answer,
            sanitise_text(claim.why),
            _evidence_rows(name, claim.checks, verdict.checks),
        )
        for name, claim in verdict.claims.items()
    )


def _evidence_rows(
    claim: str, names: tuple[str, ...], checks: Mapping[str, CheckResult]
) -> tuple[EvidenceRow, ...]:
    """Those that vote first."""
    made = [_evidence_row(claim, name, checks[name]) for name in names if name in checks]
    return tuple(sorted(made, key=lambda one: one.answer == "no vote"))


def _evidence_row(claim: str, check: str, result: CheckResult) -> EvidenceRow:
    aside = ASIDE.get((claim, check))
    wanted = aside or LEADING.get(check, tuple(result.estimates)[:MOST])
    figures = tuple(
        LeadingFigure(sanitise_text(name), meaning_of(name, check), result.estimates[name])
        for name in wanted
        if name in result.estimates
    )
    reason = next(iter(result.missing.values()), "")
    return EvidenceRow(
        check=sanitise_text(check),
        question=QUESTIONS.get(check, ""),
        answer="" if aside else result.answer,
        figures=figures,
        missing="" if figures else sanitise_text(reason),
        power=describe_check_power(result, claim),
    )
