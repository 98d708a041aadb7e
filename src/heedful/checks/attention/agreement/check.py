"""Do attention and feature importance rank tokens alike? (Jain & Wallace, 2019, experiment 1)"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64, Int
from torch import Tensor

from heedful.checks.base import Findings, rank_agreement, to_measurement
from heedful.checks.interventions.simple import Permute
from heedful.checks.requested_methods import (
    ALWAYS_COMPUTED,
    MethodOrName,
    build_method,
    method_kind,
    method_name,
    registry_order,
    score_with_method,
)
from heedful.core.records import Measurement, MissingMeasure, Series
from heedful.core.settings import OpenFraction, PositiveInt, Repeats, check_on_init
from heedful.methods import methods
from heedful.methods.erasure.leave_one_out import LeaveOneOut
from heedful.methods.gradient.gradient import OneHotGradient
from heedful.models.batch_context import BatchContext
from heedful.numerics.stats.kendall_test import Ties, kendall_p
from heedful.numerics.stats.multiple_testing import benjamini_hochberg_adjusted
from heedful.numerics.tensor.ranking import (
    Concordance,
    dense_ranks,
    kendall,
    top1_match,
    top_k_overlaps,
)
from heedful.results.tables import TextValues

ATTENTION, GRADIENT, LEAVE_ONE_OUT, SHUFFLED_GRADIENT, SHUFFLED = range(5)
TESTED_PAIRS = {
    "gradient": (ATTENTION, GRADIENT),
    "leave_one_out": (ATTENTION, LEAVE_ONE_OUT),
    "gradient_leave_one_out": (GRADIENT, LEAVE_ONE_OUT),
}
CORRECTED = ("gradient", "leave_one_out")  # pairs whose p-values are corrected over the texts
REFERENCE_KIND = "saliency"
REFERENCE_MEASURES = ("tau_references", "tau_attention_references")


@check_on_init
@dataclass(frozen=True)
class Agreement:
    """Do attention and feature importance rank tokens alike?

    Kendall's τ-b between attention, the one-hot gradient (attention held fixed) and leave-one-out.
    The gradient's agreement with leave-one-out is the reference: what a ranking can reach here. The
    control is attention shuffled among the words, averaged over `shuffles` draws. The gradient
    contains the factor α; `tau_gradient_shuffled` measures what that factor alone causes: the
    agreement of a shuffled attention with the gradient taken under it.

    Further `methods` (names, built methods, or "all") are ranked by absolute score, each against
    leave-one-out and against every other: τ, and the overlap of the `top` words (of at most half
    of the words).
    """

    shuffles: Repeats = 10
    level: OpenFraction = 0.05
    methods: tuple[MethodOrName, ...] = ()
    top: PositiveInt = 5

    def __post_init__(self) -> None:
        object.__setattr__(self, "methods", registry_order(self.methods))

    @property
    def names(self) -> tuple[str, ...]:
        """The further methods."""
        return tuple(map(method_name, self.methods))

    def __call__(self, context: BatchContext) -> Findings:
        scores, missing = self._scores(context)
        mask = context.batch.mask
        with context.clock("ranking"):
            ranks = dense_ranks(scores, mask[:, None].expand_as(scores))
            found = kendall(ranks, mask)
        tau, others = found.tau, SHUFFLED + self.shuffles
        columns = {
            "tau_gradient": tau[:, ATTENTION, GRADIENT],
            "tau_leave_one_out": tau[:, ATTENTION, LEAVE_ONE_OUT],
            "tau_gradient_leave_one_out": tau[:, GRADIENT, LEAVE_ONE_OUT],
            "tau_shuffled_leave_one_out": tau[:, SHUFFLED:others, LEAVE_ONE_OUT].mean(-1),
            "tau_gradient_shuffled": tau[:, SHUFFLED, SHUFFLED_GRADIENT],
            "top1_leave_one_out": _top1_agreement(scores, tau, LEAVE_ONE_OUT, mask),
            "top1_gradient": _top1_agreement(scores, tau, GRADIENT, mask),
        }
        measured = [to_measurement(name, column) for name, column in columns.items()]
        for place, name in enumerate(self.names, others):
            column = tau[:, place, LEAVE_ONE_OUT]
            measured.append(to_measurement("tau_leave_one_out", column, method=name))
        if self.methods:
            measured += self._between_methods(ranks, tau, mask)
        layers = measure_layers(context, scores[:, LEAVE_ONE_OUT])
        return Findings((*measured, *self._significance(found), *layers), missing)

    def _between_methods(
        self, ranks: Int[Tensor, "B K T"], tau: Float[Tensor, "B K K"], mask: Bool[Tensor, "B T"]
    ) -> Iterator[Measurement]:
        """Every pair of methods, in registry order, and the agreement among references."""
        known = {name: SHUFFLED + self.shuffles + i for i, name in enumerate(self.names)}
        known |= dict(zip(ALWAYS_COMPUTED, (ATTENTION, GRADIENT, LEAVE_ONE_OUT), strict=True))
        names = [name for name in methods if name in known]
        places = [known[name] for name in names]
        among, k = tau[:, places][:, :, places], (mask.sum(-1) // 2).clamp(max=self.top)
        for name, column in reference_agreement(names, among).items():
            yield to_measurement(name, column)
        yield from measure_pairs(names, among, top_k_overlaps(ranks[:, places], mask, k=k))

    def measure_all(self, columns: Mapping[Series, TextValues]) -> dict[str, TextValues]:
        """Significance with the false discovery rate over all texts held at the level."""
        found = {}
        for name in CORRECTED:
            p = columns[Series(f"p_{name}")]
            flags = np.array(benjamini_hochberg_adjusted(p.tolist())) <= self.level
            found[f"significant_{name}_bh"] = _where_defined(flags, p)
        return found

    def word_scores(self, context: BatchContext) -> dict[str, Float[Tensor, "B T"]]:
        """The scores of the two references."""
        target = context.predicted
        return {
            "one_hot_gradient": OneHotGradient()(context, target).scores,
            "leave_one_out": LeaveOneOut()(context, target).scores,
        }

    def _scores(
        self, context: BatchContext
    ) -> tuple[Float[Tensor, "B K T"], tuple[MissingMeasure, ...]]:
        """Attention, two measures of importance, controls, in the order above, then the methods.

        Also the methods that refuse some text, with the reason.
        """
        target = context.predicted
        gradient = OneHotGradient()(context, target).scores
        leave = LeaveOneOut(of="output")(context, target).scores
        shuffled = Permute(draws=self.shuffles, purpose="shuffled")(context)
        with context.clock("gradient"):
            slope = context.gradient(target, attention=shuffled[0])
        under = (context.embedded.detach() * slope).sum(-1).abs()
        own = context.forward.attention
        rows = [own, gradient, leave, under, *context.read_attention(shuffled)]
        missing = []
        for method in self.methods:
            scores, reason = score_with_method(build_method(method), context, target)
            rows.append(scores.abs().nan_to_num(0.0).to(gradient.device))
            if reason is not None:
                missing.append(MissingMeasure("tau_leave_one_out", reason, method_name(method)))
        return torch.stack([row.double() for row in rows], dim=1), tuple(missing)

    def _significance(self, found: Concordance) -> list[Measurement]:
        tie_sums = (found.tie_pairs, found.tie_triples, found.tie_spread)
        ties = Ties(*(one.numpy() for one in tie_sums))
        n, balance = found.n.numpy(), found.balance.numpy()
        measured = []
        for name, (one, other) in TESTED_PAIRS.items():
            p = kendall_p(n, balance[:, one, other], ties[:, one], ties[:, other])
            measured.append(Measurement(f"significant_{name}", _where_defined(p <= self.level, p)))
            if name in CORRECTED:
                measured.append(Measurement(f"p_{name}", p))
        return measured


def measure_pairs(
    names: Sequence[str], tau: Float64[Tensor, "B K K"], overlap: Float64[Tensor, "B K K"]
) -> Iterator[Measurement]:
    """τ and the overlap of the top words of every two methods; NaN where either ranks no words."""
    overlap = overlap.masked_fill(tau.isnan(), torch.nan)
    for (i, a), (j, b) in combinations(enumerate(names), 2):
        yield to_measurement("tau_pair", tau[:, i, j], b, method=a)
        yield to_measurement("overlap_pair", overlap[:, i, j], b, method=a)


def reference_agreement(
    names: Sequence[str], tau: Float64[Tensor, "B K K"]
) -> dict[str, Float[Tensor, "B"]]:
    """The mean τ of the two sorts of references, and of attention with both, equally weighted.

    References are the methods of kind saliency, which say what a word adds to the output. Some
    erase words (delete or mask one or many), the others do not (gradients). Within a sort methods
    share their arithmetic and agree for that reason, so only pairs of different sorts count.
    """
    every = [place for place, name in enumerate(names) if method_kind(name) == REFERENCE_KIND]
    erasing = [place for place in every if methods.trait(names[place], "erases")]
    others = [place for place in every if not methods.trait(names[place], "erases")]
    attention = tau[:, names.index("attention")]
    both = torch.stack([attention[:, some].nanmean(-1) for some in (erasing, others)])
    across = tau[:, erasing][:, :, others].flatten(1).nanmean(-1)
    return dict(zip(REFERENCE_MEASURES, (across, both.mean(0)), strict=True))


def measure_layers(context: BatchContext, leave: Float[Tensor, "B T"]) -> Iterator[Measurement]:
    """For every layer, and every head of it: τ with leave-one-out and the weight on words.

    Read at the audited position; nothing where the subject has only one attention.
    """
    mask = context.batch.mask
    for layer, rows in enumerate(context.layer_rows):
        scores = torch.cat([leave[:, None], rows.mean(1, keepdim=True), rows], dim=1)
        scores = scores * mask[:, None]
        tau, mass = rank_agreement(scores, mask)[:, 0], scores.sum(-1)
        for place, head in enumerate((None, *range(rows.shape[1])), start=1):
            where = {"layer": layer, "head": head}
            yield to_measurement("tau_leave_one_out", tau[:, place], **where)
            yield to_measurement("word_mass", mass[:, place], **where)


def _top1_agreement(
    scores: Float[Tensor, "B K T"],
    tau: Float[Tensor, "B K K"],
    other: int,
    mask: Bool[Tensor, "B T"],
) -> Float[Tensor, "B"]:
    """Whether attention's top word is a top word of the other; NaN where all words tie in one."""
    same = top1_match(scores[:, ATTENTION], scores[:, other], mask)
    return same.masked_fill(tau[:, ATTENTION, other].isnan(), torch.nan)


def _where_defined(flags: np.ndarray, p: TextValues) -> TextValues:
    """1 and 0 for the flags, NaN where there was nothing to test."""
    return np.where(np.isnan(p), np.nan, flags.astype(np.float64))
