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
from heedful.studies.published_numbers import Key, Published
from heedful.studies.results.cell_results import Made, Table
from heedful.studies.results.estimates import ANY, SHARE, Ends, estimate, mean, over_seeds
from heedful.studies.run.grid import TRANSFORMER, model_name
from heedful.studies.study import Claim, Model, SetOfTexts, Study

Answer = Literal["held", "did not hold", "undecided", "not examined"]
HALF = 0.5


@dataclass(frozen=True)
class Judged:
    """One claim on one set: what came out, and whether the paper's own numbers say so there.

    `beyond` names a model that the paper does not have.
    """

    claim: Claim
    texts: str
    answer: Answer
    found: Estimate | None = None
    published: float | None = None
    over: str = ""
    why: str = ""
    beyond: str = ""

    def asked_of(self, title: str = "") -> str:
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


def judged(study: Study, made: Mapping[tuple[str, Model], Made], known: Published) -> list[Judged]:
    """Every claim on every set that a model was run on."""
    there = [one for one in study.sets if any(texts == one.name for texts, _ in made)]
    found = []
    for claim in study.claims:
        for one in there:
            if not claim.only or one.name in claim.only:
                found.append(_judged(claim, one, study, made, known))
                found += _beyond(claim, one, made)
    return found


def _beyond(
    claim: Claim, texts: SetOfTexts, made: Mapping[tuple[str, Model], Made]
) -> Iterator[Judged]:
    """The claim asked of the transformers that were run."""
    if claim.model is not None or claim.than_model is not None:
        return
    for (name, model), cells in made.items():
        if name == texts.name and model[1] == TRANSFORMER:
            found, over = _found(claim, cells, cells)
            if found is not None:
                answer, named = _answer(found, claim), model_name(model)
                yield Judged(claim, name, answer, found, over=over, beyond=named)


def _judged(
    claim: Claim,
    texts: SetOfTexts,
    study: Study,
    made: Mapping[tuple[str, Model], Made],
    known: Published,
) -> Judged:
    first = claim.model or study.main
    second = claim.than_model or first
    if missing := [one for one in (first, second) if (texts.name, one) not in made]:
        why = f"{model_name(missing[0])} was not run"
        return Judged(claim, texts.name, "not examined", why=why)
    one, other = made[texts.name, first], made[texts.name, second]
    found, over = _found(claim, one, other)
    theirs = _published(claim, texts.name, first, second, known)
    if found is None:
        return Judged(claim, texts.name, "not examined", published=theirs, why="not measured")
    return Judged(claim, texts.name, _answer(found, claim), found, theirs, over)


def _found(claim: Claim, one: Made, other: Made) -> tuple[Estimate | None, str]:
    """The difference, or the share, that the claim is about, and what its interval is over."""
    over = "seeds" if len(one.seeds) > 1 else "texts"
    if claim.kind == "share":
        table = one.table(claim.measure)
        above = np.where(np.isnan(table), np.nan, table > claim.line)
        return _estimate(above, SHARE), over
    if claim.kind in ("above", "below"):
        table = one.table(claim.measure)
        if not np.isnan(table).all():
            return _estimate(table), over
        whole = one.concluded(claim.measure)  # what has no value for single texts
        several = over_seeds(np.array([each.value for each in whole]))
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
    return _apart(mine, theirs), "seeds"


def _estimate(table: Table, within: Ends = ANY) -> Estimate | None:
    return None if np.isnan(table).all() else estimate(table, mean, within)


def _apart(mine: Table, theirs: Table) -> Estimate:
    """Two models, several seeds: means of the same seed are held against each other."""
    return over_seeds(np.nanmean(mine, axis=1) - np.nanmean(theirs, axis=1))


def _published(
    claim: Claim, texts: str, first: Model, second: Model, known: Published
) -> float | None:
    """The same difference of the published means."""
    if claim.kind in ("share", "above", "below") and claim.published is None:
        return None
    one, other = claim.published or (claim.measure, claim.than or claim.measure)
    pair = Key(texts, first, one, "mean"), Key(texts, second, other, "mean")
    if not all(key in known.figures for key in pair):
        return None
    return known.figures[pair[0]].value - known.figures[pair[1]].value


def _answer(found: Estimate, claim: Claim) -> Answer:
    line = {"share": HALF, "above": claim.line, "below": claim.line}.get(claim.kind, 0.0)
    if isnan(found.low) or found.low <= line <= found.high:
        return "undecided"
    return "held" if (found.low > line) != (claim.kind == "below") else "did not hold"
