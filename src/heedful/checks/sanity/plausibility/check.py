"""Do people point at the same words? Not a measure of faithfulness."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from jaxtyping import Bool, Float64, Int
from torch import Tensor

from heedful.checks.base import Findings, rank_agreement, to_measurement
from heedful.checks.faithfulness.items import (
    DEFAULT_METHODS,
    ComparesMethods,
    ItemView,
    random_scores,
    score_items,
)
from heedful.checks.requested_methods import MethodOrName, build_method, method_name
from heedful.core.rationales import WordAnnotations, annotated_tokens
from heedful.core.records import MissingMeasure
from heedful.core.settings import Fraction, Repeats, check_on_init
from heedful.core.values import Example
from heedful.models.batch_context import BatchContext
from heedful.models.protocols import Subject
from heedful.numerics.tensor import rationale_metrics
from heedful.numerics.tensor.erasure_metrics import removal_ranks, sign_agreement
from heedful.numerics.tensor.ranking import dense_ranks

BEYOND_RANDOM = "beyond_random"
RATIONALE_MEASURES = ("auprc", BEYOND_RANDOM, "token_f1", "iou_f1", "top_k")
CHOSEN_WORD_MEASURES = ("token_f1", "iou_f1")  # over the share of words that is chosen
NO_RATIONALE = "no text has a rationale"
NO_WORD_SCORES = "no text has word_scores"
NO_SHARE = "how many words to choose is not known: set share"
TOO_MANY_CLASSES = "people's scores have a sign for two classes only"


@dataclass(frozen=True, eq=False)
class AnnotationView:
    """Rationale marks and word scores that people gave, aligned with the words that are ranked."""

    words: ItemView

    @cached_property
    def people(self) -> list[WordAnnotations]:
        """The annotations of each text; empty ones for texts without any."""
        context = self.words.context
        return [context.rationales.get(one, WordAnnotations()) for one in context.batch.instances]

    @cached_property
    def marked(self) -> Bool[Tensor, "B W"]:
        """True where a word is in the rationale."""
        return self._spread([one.marked for one in self.people]) > 0

    @cached_property
    def scores(self) -> Float64[Tensor, "B W"]:
        """The scores that people gave; 0 where there are none."""
        return self._spread([one.scores for one in self.people])

    @cached_property
    def scored(self) -> Bool[Tensor, "B"]:
        """Texts whose words have scores."""
        return torch.tensor([one.scores is not None for one in self.people])

    def reason(self, nothing: str) -> str:
        """Why no text is annotated: the reason of the first text that has one, or `nothing`."""
        return next((one.why for one in self.people if one.why), nothing)

    @cached_property
    def _number(self) -> Int[Tensor, "B W"]:
        """The number, in the text's own words, of each word that the model has tokens of."""
        item_index, word = self.words.item_index, self.words.context.batch.word
        whose = item_index if word is None else torch.where(item_index >= 0, word, -1)
        empty = torch.full(self.words.real.shape, -1)
        return empty.scatter_reduce(1, item_index.clamp(min=0), whose, "amax")

    def _spread(self, values: Sequence[tuple[bool | float, ...] | None]) -> Float64[Tensor, "B W"]:
        found = torch.zeros(self.words.real.shape, dtype=torch.float64)
        for row, one in enumerate(values):
            if one:
                here = self.words.real[row]
                found[row, here] = torch.tensor(one, dtype=torch.float64)[self._number[row, here]]
        return found


@check_on_init
@dataclass(frozen=True)
class Plausibility(ComparesMethods):
    """Do people point at the same words?

    Methods rank words by score, highest first, with its sign, for the predicted class. For texts
    with a rationale: `auprc`, the step-wise area under precision and recall; `beyond_random`, that
    minus its mean over random `orders`; `token_f1` and `iou_f1` for the `share` of words that is
    chosen, word by word and by spans (DeYoung et al., 2020); `top_k`, the share of the rationale
    among as many top words as it has. A share of 0 stands for the mean share of the data.

    For texts with word_scores: `rank_human`, τ-b of |score of the method| and |score of people −
    `neutral`|, and for signed methods `sign_human`, for two classes of which higher scores support
    the second. The check concerns no claim: people may point at words that the model does not use.
    """

    methods: tuple[MethodOrName, ...] = DEFAULT_METHODS
    share: Fraction = 0.0
    orders: Repeats = 10
    neutral: float = 0.0

    def fitted(self, examples: Iterable[Example], subject: Subject) -> "Plausibility":  # noqa: ARG002
        """With the mean share of words that people marked, over the texts with a rationale."""
        if self.share:
            return self
        total, texts = 0.0, 0
        for one in examples:
            if one.rationale:
                total, texts = total + len(one.rationale) / len(annotated_tokens(one)), texts + 1
        return replace(self, share=total / texts) if texts else self

    def _promised(self) -> Iterator[tuple[str, str]]:
        signed = [method_name(one) for one in self.methods if build_method(one).signed]
        for measure in RATIONALE_MEASURES:
            controls = () if measure == BEYOND_RANDOM else ("uniform", "random")
            yield from ((measure, name) for name in (*self.names, *controls))
        yield from (("rank_human", name) for name in (*self.names, "random"))
        yield from (("sign_human", name) for name in signed)

    def __call__(self, context: BatchContext) -> Findings:
        words = ItemView(context)
        annotations = AnnotationView(words)
        rows, reasons = score_items(words, self.methods, context.predicted)
        drawn = random_scores(words, "orders of plausibility", draws=self.orders)
        scores = torch.cat([torch.stack([*rows, words.real.double()]), drawn])
        columns = self._of_marks(scores, annotations) | self._of_scores(scores, annotations)
        order = [*self.names, "uniform", "random"]
        measured = [
            to_measurement(measure, columns[measure][order.index(name)], method=name)
            for measure, name in self._promised()
        ]
        return Findings(tuple(measured), tuple(self._missing(annotations, reasons)))

    def _missing(
        self, annotations: AnnotationView, reasons: dict[str, str]
    ) -> Iterator[MissingMeasure]:
        """Why some texts, or all, are without a value."""
        unmarked = None if bool(annotations.marked.any()) else annotations.reason(NO_RATIONALE)
        unscored = None if bool(annotations.scored.any()) else annotations.reason(NO_WORD_SCORES)
        further = dict.fromkeys(CHOSEN_WORD_MEASURES, None if self.share else NO_SHARE)
        if len(annotations.words.context.subject.labels) > 2:
            further["sign_human"] = TOO_MANY_CLASSES
        for measure, name in self._promised():
            first = unmarked if measure in RATIONALE_MEASURES else unscored
            if why := first or further.get(measure) or reasons.get(name):
                yield MissingMeasure(measure, why, name)

    def _of_marks(
        self, scores: Float64[Tensor, "K B W"], annotations: AnnotationView
    ) -> dict[str, Float64[Tensor, "M B"]]:
        """The measures that need a rationale."""
        real, marked, known = annotations.words.real, annotations.marked, scores.isfinite().all(-1)
        numbers, real_of_each = scores.nan_to_num(0.0), real.expand_as(scores)
        ranks = dense_ranks(numbers, real_of_each)
        sizes = rationale_metrics.words_in_share(annotations.words.counts, self.share)
        chosen = (removal_ranks(numbers, real_of_each) < sizes[:, None]) & real
        count = marked.sum(-1)
        found = {
            "auprc": rationale_metrics.average_precision(ranks, marked),
            "token_f1": rationale_metrics.token_f1(ranks, marked, sizes),
            "iou_f1": rationale_metrics.span_f1(chosen, marked),
            "top_k": rationale_metrics.hits_at_k(ranks, marked, count) / count,
        }
        if not self.share:
            unknown = torch.full_like(found["auprc"], torch.nan)
            found |= dict.fromkeys(CHOSEN_WORD_MEASURES, unknown)
        means = {name: self._averaged(one, known) for name, one in found.items()}
        return means | {BEYOND_RANDOM: means["auprc"] - means["auprc"][-1:]}

    def _of_scores(
        self, scores: Float64[Tensor, "K B W"], annotations: AnnotationView
    ) -> dict[str, Float64[Tensor, "M B"]]:
        """The measures that need scores of single words."""
        real, known = annotations.words.real, scores.isfinite().all(-1) & annotations.scored
        unscored = ~real | ~annotations.scored[:, None]
        away = (annotations.scores - self.neutral).masked_fill(unscored, 0.0)
        both = torch.cat([scores.nan_to_num(0.0).abs(), away.abs()[None]]).transpose(0, 1)
        tau = rank_agreement(both, real)[:, -1, :-1].T
        context = annotations.words.context
        # methods score the predicted class, people the second class
        towards = torch.where(context.predicted.cpu() == 1, 1.0, -1.0)[:, None]
        same = sign_agreement(scores.nan_to_num(0.0), towards * away)
        if len(context.subject.labels) > 2:
            same = torch.full_like(same, torch.nan)
        found = {"rank_human": tau, "sign_human": same}
        return {name: self._averaged(one, known) for name, one in found.items()}

    def _averaged(self, found: Float64[Tensor, "K B"], known: Tensor) -> Float64[Tensor, "M B"]:
        """Those of the methods and of equal scores, then the mean over the random orders."""
        found = torch.where(known, found, torch.nan)
        first = len(self.methods) + 1
        return torch.cat([found[:first], found[first:].mean(0, keepdim=True)])
