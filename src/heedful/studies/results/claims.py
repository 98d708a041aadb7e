"""The claims of a paper held against what came out, set by set, with intervals.

What is claimed of a model alone, not of one beside another, is asked of transformers too: of them
nothing was published.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isnan
from typing import Literal

import numpy as np

from heedful.core.records import Estimate
from heedful.studies.published_numbers import NumberKey, PublishedNumbers
from heedful.studies.results.cell_results import CellResults, SeedTable
from heedful.studies.results.estimates import (
    UNBOUNDED,
    UNIT_RANGE,
    ValueRange,
    estimate_statistic,
    mean,
    t_interval_over_seeds,
)
from heedful.studies.run.grid import OWN_ATTENTION, describe_model
from heedful.studies.study import ModelSpec, Study, StudyClaim, StudyDataset

ReplicationAnswer = Literal["held", "did not hold", "undecided", "not examined"]
HALF = 0.5


@dataclass(frozen=True)
class ClaimFinding:
    """One claim on one set: what came out, and whether the paper's own numbers say so there.

    `beyond` names a model that the paper does not have.
    """

    claim: StudyClaim
    texts: str
    answer: ReplicationAnswer
    found: Estimate | None = None
    published: float | None = None
    over: str = ""
    why: str = ""
    beyond: str = ""

    def dataset_label(self, title: str = "") -> str:
        """For people: the set, and the model where it is none of the paper's."""
        return f"{title or self.texts}{f', {self.beyond}' if self.beyond else ''}"

    @property
    def as_published(self) -> bool | None:
        """Whether we find what the paper found on this set; None where either does not say."""
        if self.beyond:
            return None
        theirs = False if self.texts in self.claim.except_ else None
        if self.published is not None:
            below = self.claim.kind == "below"
            theirs = (
                (self.published < self.claim.line) if below else self.published > self.claim.line
            )
        if theirs is None or self.answer in ("undecided", "not examined"):
            return None
        return theirs == (self.answer == "held")


def evaluate_claims(
    study: Study, made: Mapping[tuple[str, ModelSpec], CellResults], known: PublishedNumbers
) -> list[ClaimFinding]:
    """Every claim on every set that a model was run on."""
    there = [one for one in study.sets if any(texts == one.name for texts, _ in made)]
    found = []
    for claim in study.claims:
        for one in there:
            if not claim.only or one.name in claim.only:
                found.append(_evaluate_claim(claim, one, study, made, known))
                found += _evaluate_on_transformers(claim, one, made)
    return found


def _evaluate_on_transformers(
    claim: StudyClaim, texts: StudyDataset, made: Mapping[tuple[str, ModelSpec], CellResults]
) -> Iterator[ClaimFinding]:
    """The claim asked of the transformers that were run."""
    if claim.model is not None or claim.than_model is not None:
        return
    for (name, model), cells in made.items():
        if name == texts.name and model[1] == OWN_ATTENTION:
            found, over = _estimate_claim(claim, cells, cells)
            if found is not None:
                answer, named = _decide(found, claim), describe_model(model)
                yield ClaimFinding(claim, name, answer, found, over=over, beyond=named)


def _evaluate_claim(
    claim: StudyClaim,
    texts: StudyDataset,
    study: Study,
    made: Mapping[tuple[str, ModelSpec], CellResults],
    known: PublishedNumbers,
) -> ClaimFinding:
    first = claim.model or study.main
    second = claim.than_model or first
    if missing := [one for one in (first, second) if (texts.name, one) not in made]:
        why = f"{describe_model(missing[0])} was not run"
        return ClaimFinding(claim, texts.name, "not examined", why=why)
    one, other = made[texts.name, first], made[texts.name, second]
    found, over = _estimate_claim(claim, one, other)
    theirs = _published_difference(claim, texts.name, first, second, known)
    if found is None:
        return ClaimFinding(claim, texts.name, "not examined", published=theirs, why="not measured")
    return ClaimFinding(claim, texts.name, _decide(found, claim), found, theirs, over)


def _estimate_claim(
    claim: StudyClaim, one: CellResults, other: CellResults
) -> tuple[Estimate | None, str]:
    """The difference, or the share, that the claim is about, and what its interval is over."""
    over = "seeds" if len(one.seeds) > 1 else "texts"
    if claim.kind == "share":
        table = one.table(claim.measure)
        above = np.where(np.isnan(table), np.nan, table > claim.line)
        return _estimate(above, UNIT_RANGE), over
    if claim.kind in ("above", "below"):
        table = one.table(claim.measure)
        if not np.isnan(table).all():
            return _estimate(table), over
        whole = one.verdict_estimates(claim.measure)  # what has no value for single texts
        several = t_interval_over_seeds(np.array([each.value for each in whole]))
        return (whole[0] if len(whole) == 1 else several if whole else None), over
    if claim.kind == "measures":
        return _estimate(one.table(claim.measure) - one.table(claim.than)), over
    both = [seed for seed in one.seeds if seed in other.seeds]
    mine, theirs = (
        made.table(claim.measure)[[made.seeds.index(seed) for seed in both]]
        for made in (one, other)
    )
    if len(both) == 1 and np.array_equal(one.instances, other.instances):
        return _estimate(mine - theirs), "texts"
    if len(both) < 2 or np.isnan(mine).all() or np.isnan(theirs).all():
        return None, over
    return _estimate_seed_differences(mine, theirs), "seeds"


def _estimate(table: SeedTable, within: ValueRange = UNBOUNDED) -> Estimate | None:
    return None if np.isnan(table).all() else estimate_statistic(table, mean, within)


def _estimate_seed_differences(mine: SeedTable, theirs: SeedTable) -> Estimate:
    """Two models, several seeds: means of the same seed are held against each other."""
    return t_interval_over_seeds(np.nanmean(mine, axis=1) - np.nanmean(theirs, axis=1))


def _published_difference(
    claim: StudyClaim, texts: str, first: ModelSpec, second: ModelSpec, known: PublishedNumbers
) -> float | None:
    """The same difference of the published means."""
    if claim.kind in ("share", "above", "below") and claim.published is None:
        return None
    one, other = claim.published or (claim.measure, claim.than or claim.measure)
    pair = NumberKey(texts, first, one, "mean"), NumberKey(texts, second, other, "mean")
    if not all(key in known.figures for key in pair):
        return None
    return known.figures[pair[0]].value - known.figures[pair[1]].value


def _decide(found: Estimate, claim: StudyClaim) -> ReplicationAnswer:
    line = {"share": HALF, "above": claim.line, "below": claim.line}.get(claim.kind, 0.0)
    if isnan(found.low) or found.low <= line <= found.high:
        return "undecided"
    return "held" if (found.low > line) != (claim.kind == "below") else "did not hold"
