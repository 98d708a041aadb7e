"""Do people point at the same words? Apart from faithfulness: a model need not use what they do."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from jaxtyping import Float64
from torch import Tensor

from heedful.checks.base import Findings, checks, to_measurement
from heedful.checks.faithfulness.word_removal import WordView
from heedful.checks.faithfulness.word_scores import (
    DEFAULT_METHODS,
    random_scores,
    score_words,
    with_attention,
)
from heedful.checks.requested_methods import MethodOrName, build_method, method_name
from heedful.checks.sanity.plausibility.annotations import AnnotationView
from heedful.core.errors import ConfigError
from heedful.core.rationales import annotated_tokens
from heedful.core.records import Claim
from heedful.core.values import Example
from heedful.models.batch_context import BatchContext
from heedful.numerics.tensor import rationale_metrics
from heedful.numerics.tensor.erasure_metrics import removal_ranks
from heedful.numerics.tensor.ranking import dense_ranks, kendall

BEYOND_RANDOM = "beyond_random"
RATIONALE_MEASURES = ("auprc", BEYOND_RANDOM, "token_f1", "iou_f1", "top_k")
CHOSEN_WORD_MEASURES = ("token_f1", "iou_f1")  # of so many words as the share says
NO_RATIONALE = "no text has a rationale"
NO_WORD_SCORES = "no text has word_scores"
NO_SHARE = "how many words to choose is not known: set share"
TOO_MANY_CLASSES = "which class people's scores speak for is known of two classes only"


@checks.register("plausibility")
@dataclass(frozen=True)
class Plausibility:
    """Do people point at the same words?

    Methods rank words from the highest score down, with its sign, for the class predicted. Where a
    row has a rationale: `auprc_M`, the area under precision and recall by steps, and that less its
    mean over random `orders`, `beyond_random_M`; `token_f1_M` and `iou_f1_M`, of the `share` of the
    words that is chosen, words one by one and in spans (DeYoung et al., 2020); `top_k_M`, the share
    of the rationale among as many highest words as it has.
    A share of 0 is the mean share of the data, found before the work begins. Where a row has
    word_scores: `rank_human_M`, τ-b of |M| and |score − `neutral`|, and of signed methods
    `sign_human_M`, for two classes the second of which higher scores speak for. It bears on no
    claim: people may point at words that the model does not use.
    """

    methods: tuple[MethodOrName, ...] = DEFAULT_METHODS
    share: float = 0.0
    orders: int = 10
    neutral: float = 0.0
    claim: ClassVar[Claim | None] = None
    usual: ClassVar[bool] = False  # few data sets have what it asks for
    head_measures: ClassVar[tuple[str, ...]] = ()
    beside: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "methods", with_attention(self.methods))
        if self.orders < 1:
            raise ConfigError(f"orders must be at least 1, not {self.orders}.")
        if not 0.0 <= self.share <= 1.0:
            raise ConfigError(
                f"share must be a share of the words, or 0 for that of the data, not {self.share}."
            )

    def fitted(self, examples: Iterable[Example]) -> "Plausibility":
        """With the share of the words that people marked, on the average of the texts they did."""
        if self.share:
            return self
        total, texts = 0.0, 0
        for one in examples:
            if one.rationale:
                total, texts = total + len(one.rationale) / len(annotated_tokens(one)), texts + 1
        return replace(self, share=total / texts) if texts else self

    @property
    def names(self) -> tuple[str, ...]:
        """The methods under test."""
        return tuple(map(method_name, self.methods))

    @property
    def measures(self) -> tuple[str, ...]:
        """For each measure those of all methods, then those of the controls."""
        return tuple(f"{measure}_{name}" for measure, name in self._promised())

    def _promised(self) -> Iterator[tuple[str, str]]:
        signed = [method_name(one) for one in self.methods if build_method(one).signed]
        for measure in RATIONALE_MEASURES:
            controls = () if measure == BEYOND_RANDOM else ("uniform", "random")
            yield from ((measure, name) for name in (*self.names, *controls))
        yield from (("rank_human", name) for name in (*self.names, "random"))
        yield from (("sign_human", name) for name in signed)

    def __call__(self, context: BatchContext) -> Findings:
        words = WordView(context)
        told = AnnotationView(words)
        rows, reasons = score_words(words, self.methods, context.predicted)
        drawn = random_scores(words, "orders of plausibility", draws=self.orders)
        scores = torch.cat([torch.stack([*rows, words.real.double()]), drawn])
        columns = self._of_marks(scores, told) | self._of_scores(scores, told)
        order = [*self.names, "uniform", "random"]
        measured = [
            to_measurement(f"{measure}_{name}", columns[measure][order.index(name)])
            for measure, name in self._promised()
        ]
        return Findings(tuple(measured), self._missing(told, reasons))

    def _missing(self, told: AnnotationView, reasons: dict[str, str]) -> dict[str, str]:
        """Why some texts, or all, are without a value."""
        unmarked = None if bool(told.marked.any()) else told.reason(NO_RATIONALE)
        unscored = None if bool(told.scored.any()) else told.reason(NO_WORD_SCORES)
        unsized = None if self.share else NO_SHARE
        many = TOO_MANY_CLASSES if len(told.words.context.subject.labels) > 2 else None
        found = {}
        for measure, name in self._promised():
            first = unmarked if measure in RATIONALE_MEASURES else unscored
            second = (
                unsized
                if measure in CHOSEN_WORD_MEASURES
                else many
                if measure == "sign_human"
                else None
            )
            if why := first or second or reasons.get(name):
                found[f"{measure}_{name}"] = why
        return found

    def _of_marks(
        self, scores: Float64[Tensor, "K B W"], told: AnnotationView
    ) -> dict[str, Float64[Tensor, "M B"]]:
        """What needs a rationale."""
        real, marked, known = told.words.real, told.marked, scores.isfinite().all(-1)
        ranks = dense_ranks(scores.nan_to_num(0.0), real.expand_as(scores))
        sizes = rationale_metrics.words_in_share(told.words.counts, self.share)
        chosen = (
            removal_ranks(scores.nan_to_num(0.0), real.expand_as(scores)) < sizes[:, None]
        ) & real
        count = marked.sum(-1)
        found = {
            "auprc": rationale_metrics.average_precision(ranks, marked),
            "token_f1": rationale_metrics.token_f1(ranks, marked, sizes),
            "iou_f1": rationale_metrics.span_f1(chosen, marked),
            "top_k": rationale_metrics.hits_at_k(ranks, marked, count) / count,
        }
        if not self.share:
            found |= {
                name: torch.full_like(found["auprc"], torch.nan) for name in CHOSEN_WORD_MEASURES
            }
        means = {name: self._averaged(one, known) for name, one in found.items()}
        return means | {BEYOND_RANDOM: means["auprc"] - means["auprc"][-1:]}

    def _of_scores(
        self, scores: Float64[Tensor, "K B W"], told: AnnotationView
    ) -> dict[str, Float64[Tensor, "M B"]]:
        """What needs numbers of single words."""
        real, known = told.words.real, scores.isfinite().all(-1) & told.scored
        away = (told.scores - self.neutral).masked_fill(~real | ~told.scored[:, None], 0.0)
        both = torch.cat([scores.nan_to_num(0.0).abs(), away.abs()[None]]).transpose(0, 1)
        tau = kendall(dense_ranks(both, real[:, None].expand_as(both)), real).tau[:, -1, :-1].T
        context = told.words.context
        # scores are for the class predicted, people's numbers for the second
        towards = torch.where(context.predicted.cpu() == 1, 1.0, -1.0)[:, None]
        same = rationale_metrics.sign_agreement(scores.nan_to_num(0.0), towards * away)
        if len(context.subject.labels) > 2:
            same = torch.full_like(same, torch.nan)
        found = {"rank_human": tau, "sign_human": same}
        return {name: self._averaged(one, known) for name, one in found.items()}

    def _averaged(
        self, found: Float64[Tensor, "K B"], known: torch.Tensor
    ) -> Float64[Tensor, "M B"]:
        """Those of the methods and of equal scores, then the mean over the random orders."""
        found = torch.where(known, found, torch.nan)
        first = len(self.methods) + 1
        return torch.cat([found[:first], found[first:].mean(0, keepdim=True)])
