"""The claims of a paper tested on our results, set by set, with intervals.

Claims about a single model are also tested on transformers, for which nothing was published.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import isnan
from typing import Literal

import numpy as np

from heedful.core.records import Estimate
from heedful.studies.cell_results import CellResults, StudyResults
from heedful.studies.estimates import (
    UNIT_RANGE,
    estimate_if_defined,
    join_run_estimates,
    mean,
    t_interval_over_seeds,
)
from heedful.studies.grid import OWN_ATTENTION, describe_model
from heedful.studies.published_numbers import NumberKey, PublishedNumbers
from heedful.studies.study import ModelSpec, Study, StudyClaim, StudyDataset

ReplicationAnswer = Literal["held", "did not hold", "undecided", "not examined"]
HALF = 0.5


@dataclass(frozen=True)
class ClaimFinding:
    """One claim on one set: our answer and estimate, and the published value if there is one.

    `other_model` names a model that is not in the paper.
    """

    claim: StudyClaim
    texts: str
    answer: ReplicationAnswer
    estimate: Estimate | None = None
    published: float | None = None
    over: str = ""
    why: str = ""
    other_model: str = ""

    def dataset_label(self, title: str = "") -> str:
        """The set, and the model if it is not in the paper."""
        return f"{title or self.texts}{f', {self.other_model}' if self.other_model else ''}"

    @property
    def as_published(self) -> bool | None:
        """Whether our answer is that of the paper's numbers on this set; None if either is open."""
        if self.other_model:
            return None
        theirs = False if self.texts in self.claim.except_ else None
        if self.published is not None:
            line = self.claim.line
            theirs = self.published < line if self.claim.kind == "below" else self.published > line
        if theirs is None or self.answer in ("undecided", "not examined"):
            return None
        return theirs == (self.answer == "held")


def evaluate_claims(
    study: Study, results: StudyResults, known: PublishedNumbers
) -> list[ClaimFinding]:
    """Evaluate every claim on every set that a model was run on."""
    were_run = {texts for texts, _ in results}
    findings = []
    for claim in study.claims:
        for one in study.sets:
            if one.name in were_run and (not claim.only or one.name in claim.only):
                findings.append(_evaluate_claim(claim, one, study, results, known))
                findings += _evaluate_on_transformers(claim, one, results)
    return findings


def _evaluate_on_transformers(
    claim: StudyClaim, texts: StudyDataset, results: StudyResults
) -> Iterator[ClaimFinding]:
    """The claim tested on the transformers that were run."""
    if claim.model is not None or claim.than_model is not None:
        return
    for (name, model), cells in results.items():
        if name == texts.name and model[1] == OWN_ATTENTION:
            estimate, over = _estimate_claim(claim, cells, cells)
            if estimate is not None:
                answer, other = _decide(estimate, claim), describe_model(model)
                yield ClaimFinding(claim, name, answer, estimate, over=over, other_model=other)


def _evaluate_claim(
    claim: StudyClaim,
    texts: StudyDataset,
    study: Study,
    results: StudyResults,
    known: PublishedNumbers,
) -> ClaimFinding:
    first = claim.model or study.main
    second = claim.than_model or first
    if missing := [one for one in (first, second) if (texts.name, one) not in results]:
        why = f"{describe_model(missing[0])} was not run"
        return ClaimFinding(claim, texts.name, "not examined", why=why)
    estimate, over = _estimate_claim(claim, results[texts.name, first], results[texts.name, second])
    theirs = _published_difference(claim, texts.name, first, second, known)
    if estimate is None:
        return ClaimFinding(claim, texts.name, "not examined", published=theirs, why="not measured")
    return ClaimFinding(claim, texts.name, _decide(estimate, claim), estimate, theirs, over)


def _estimate_claim(
    claim: StudyClaim, one: CellResults, other: CellResults
) -> tuple[Estimate | None, str]:
    """The difference, share or mean that the claim is about, and what its interval is over."""
    over = "seeds" if len(one.seeds) > 1 else "texts"
    table = one.table(claim.measure)
    if claim.kind == "share":
        above = np.where(np.isnan(table), np.nan, table > claim.line)
        return estimate_if_defined(above, mean, UNIT_RANGE), over
    if claim.kind in ("above", "below"):
        by_text = estimate_if_defined(table, mean)
        return by_text or join_run_estimates(one.verdict_estimates(claim.measure)), over
    if claim.kind == "measures":
        return estimate_if_defined(table - one.table(claim.than), mean), over
    both = [seed for seed in one.seeds if seed in other.seeds]
    mine, theirs = (
        cells.table(claim.measure)[[cells.seeds.index(seed) for seed in both]]
        for cells in (one, other)
    )
    if len(both) == 1 and np.array_equal(one.instances, other.instances):
        return estimate_if_defined(mine - theirs, mean), "texts"
    if len(both) < 2 or np.isnan(mine).all() or np.isnan(theirs).all():
        return None, over
    by_seed = np.nanmean(mine, axis=1) - np.nanmean(theirs, axis=1)
    return t_interval_over_seeds(by_seed), "seeds"


def _published_difference(
    claim: StudyClaim, texts: str, first: ModelSpec, second: ModelSpec, known: PublishedNumbers
) -> float | None:
    """The same difference of published means; None if one of them is missing."""
    if claim.kind in ("share", "above", "below") and claim.published is None:
        return None
    one, other = claim.published or (claim.measure, claim.than or claim.measure)
    pair = NumberKey(texts, first, one, "mean"), NumberKey(texts, second, other, "mean")
    if not all(key in known.figures for key in pair):
        return None
    return known.figures[pair[0]].value - known.figures[pair[1]].value


def _decide(estimate: Estimate, claim: StudyClaim) -> ReplicationAnswer:
    line = {"share": HALF, "above": claim.line, "below": claim.line}.get(claim.kind, 0.0)
    if isnan(estimate.low) or estimate.low <= line <= estimate.high:
        return "undecided"
    return "held" if (estimate.low > line) != (claim.kind == "below") else "did not hold"
