"""Layer-wise relevance propagation through the attention classifiers (Arras et al., 2017).

In z = Σ w x + b each x gets the share w x / (z + ε sign z) of the relevance of z; sign 0 is 1. A
gate times a signal gives all to the signal, and tanh and relu pass on what they get: so the
relevance of an LSTM state goes to its cell, from there to the previous cell and to the candidate,
and from the candidate to the word and the previous state. Attention is a gate of the states.

The share of b and ε is lost, or spread evenly over all inputs by `bias_factor`; a ledger records
what is lost.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.core.errors import NotApplicable
from heedful.core.values import Forward
from heedful.models.batch_context import BatchContext
from heedful.models.recurrent.classifier import AttentionClassifier, QueryOutput
from heedful.models.recurrent.encoders import CNN, MLP, Average, BiLSTM, reverse_texts


@dataclass(eq=False)
class RelevanceLedger:
    """The propagation rules, and the relevance of each text that reaches no word."""

    epsilon: float
    bias_factor: float
    rest: Float[Tensor, "B"] = field(default_factory=lambda: torch.zeros(1, dtype=torch.float64))

    def through_linear(
        self,
        parts: Sequence[tuple[Tensor, Float[Tensor, "M _"]]],
        bias: Float[Tensor, "M"],
        relevance: Float[Tensor, "B *K M"],
    ) -> list[Tensor]:
        """Propagate from Σ W x + b to every x."""
        total = sum((x @ weight.T for x, weight in parts), start=bias)
        ratio, spare = self._ratio(total, bias, relevance)
        share = self._share(spare, sum(x.shape[-1] for x, _ in parts))
        return [x * (ratio @ weight) + share for x, weight in parts]

    def through_sum(self, parts: Sequence[Tensor], relevance: Float[Tensor, "B D"]) -> list[Tensor]:
        """Propagate from a sum of vectors to each of them."""
        ratio, spare = self._ratio(sum(parts[1:], start=parts[0]), None, relevance)
        share = self._share(spare, len(parts) * relevance.shape[-1])
        return [part * ratio + share for part in parts]

    def through_mixture(
        self, weights: Float[Tensor, "B T"], states: Float[Tensor, "B T D"], relevance: Tensor
    ) -> Float[Tensor, "B T D"]:
        """Propagate from Σ_t α_t h_t to every state that is attended to."""
        parts, here = weights[..., None] * states, (weights > 0)[..., None]
        ratio, spare = self._ratio(parts.sum(1), None, relevance)
        units = here.sum((1, 2), keepdim=True) * states.shape[-1]
        return parts * ratio[:, None] + here * self._share(spare[:, None], units)

    def add_rest(self, relevance: Float[Tensor, "B ..."]) -> None:
        """Record relevance that reaches no word."""
        self.rest = self.rest + relevance.flatten(1).sum(-1)

    def _ratio(
        self, total: Tensor, bias: Tensor | None, relevance: Tensor
    ) -> tuple[Tensor, Float[Tensor, "B *K 1"]]:
        """Relevance per unit of a sum, and how much of it bias and stabiliser absorb."""
        steady = self.epsilon * torch.where(total >= 0, 1.0, -1.0).to(total)
        ratio = relevance / (total + steady)
        own = steady if bias is None else steady + bias
        return ratio, (own * ratio).sum(-1, keepdim=True)

    def _share(self, spare: Float[Tensor, "B *K 1"], units: int | Tensor) -> Tensor:
        """Spread a part of what bias and stabiliser absorb over the inputs; the rest is lost."""
        self.add_rest((1 - self.bias_factor) * spare)
        return self.bias_factor * spare / units


def word_relevance(
    network: AttentionClassifier,
    context: BatchContext,
    *,
    start: Float[Tensor, "B C"],
    ledger: RelevanceLedger,
) -> Float[Tensor, "B T E"]:
    """Relevance of each component of the word vectors; `start` is the relevance of the logits."""
    # not the whole network: its word vectors can be large, and are not needed
    encoder, decoder = (copy.deepcopy(one).double() for one in (network.encoder, network.decoder))
    vectors, forward, present = context.embedded.double(), context.forward, context.batch.present
    states, weights = forward.states.double(), forward.attention.double()
    pooled = torch.einsum("bt,btd->bd", weights, states)
    if isinstance(decoder, QueryOutput):
        down = _through_question(decoder, pooled, forward, start, ledger)
    else:
        weight, bias = decoder.class_weights()
        (down,) = ledger.through_linear([(pooled, weight)], bias, start)
    relevance = ledger.through_mixture(weights, states, down)
    if isinstance(encoder, BiLSTM):
        ahead, behind = relevance.chunk(2, dim=-1)
        to_words = _through_lstm(encoder.ahead, vectors, ahead, ledger)
        back = reverse_texts(vectors, present), reverse_texts(behind, present)
        return to_words + reverse_texts(_through_lstm(encoder.behind, *back, ledger), present)
    if isinstance(encoder, CNN):
        return _through_cnn(encoder, vectors, present, relevance, ledger)
    if isinstance(encoder, Average | MLP):
        return _through_layers(encoder, vectors, relevance, ledger)
    raise NotApplicable(f"lrp has no rules for the encoder {type(encoder).__name__}.")


def _through_question(
    output: QueryOutput, pooled: Tensor, forward: Forward, start: Tensor, ledger: RelevanceLedger
) -> Float[Tensor, "B D"]:
    """Propagate from the logits to the attended state; the share of the question is lost."""
    if forward.question is None:
        raise RuntimeError("The pass of a model with a query must keep the encoded question.")
    parts = [(pooled, output.text.weight), (forward.question.double(), output.question.weight)]
    bias = output.text.bias + output.question.bias
    inner = sum((x @ weight.T for x, weight in parts), start=bias).tanh()
    (down,) = ledger.through_linear([(inner, output.out.weight)], output.out.bias, start)
    to_text, to_question = ledger.through_linear(parts, bias, down)
    ledger.add_rest(to_question)
    return to_text


def _through_layers(
    encoder: Average | MLP, vectors: Tensor, relevance: Tensor, ledger: RelevanceLedger
) -> Float[Tensor, "B T E"]:
    """Propagate word by word through linear maps, each followed by tanh."""
    layers = [layer for layer in encoder.modules() if isinstance(layer, nn.Linear)]
    entered = [vectors]
    for layer in layers[:-1]:
        entered.append((entered[-1] @ layer.weight.T + layer.bias).tanh())
    for layer, x in zip(reversed(layers), reversed(entered), strict=True):
        (relevance,) = ledger.through_linear([(x, layer.weight)], layer.bias, relevance)
    return relevance


def _through_cnn(
    encoder: CNN,
    vectors: Tensor,
    present: Bool[Tensor, "B T"],
    relevance: Tensor,
    ledger: RelevanceLedger,
) -> Float[Tensor, "B T E"]:
    """Each convolution is a linear map of its window; relevance outside the text is lost."""
    length, most = vectors.shape[1], max(encoder.kernels) // 2
    inside = present[..., None].to(vectors)
    wide = nn.functional.pad(vectors * inside, (0, 0, most, most))
    relevance_at = torch.zeros_like(wide)
    each = relevance.chunk(len(encoder.kernels), dim=-1)
    for width, layer, down in zip(encoder.kernels, encoder.convolutions, each, strict=True):
        own = dict(layer.named_parameters())
        first = most - width // 2
        places = [slice(first + step, first + step + length) for step in range(width)]
        maps = own["weight"].unbind(-1)
        parts = [(wide[:, at], weight) for at, weight in zip(places, maps, strict=True)]
        pieces = ledger.through_linear(parts, own["bias"], down)
        for at, piece in zip(places, pieces, strict=True):
            relevance_at[:, at] += piece
    words = relevance_at[:, most : most + length] * inside
    total = relevance_at.flatten(1).sum(-1, keepdim=True)
    ledger.add_rest(total - words.flatten(1).sum(-1, keepdim=True))
    return words


def _through_lstm(
    lstm: nn.LSTM,
    vectors: Float[Tensor, "B T E"],
    relevance: Float[Tensor, "B T H"],
    ledger: RelevanceLedger,
) -> Float[Tensor, "B T E"]:
    """Propagate from states to words, from the last step to the first."""
    own = dict(lstm.named_parameters())
    state = cell = vectors.new_zeros(len(vectors), lstm.hidden_size)
    read = vectors @ own["weight_ih_l0"].T + own["bias_ih_l0"] + own["bias_hh_l0"]
    steps = []  # the state before each step, and the two parts of the cell after it
    for each in read.unbind(1):
        enter, forget, candidate, leave = (each + state @ own["weight_hh_l0"].T).chunk(4, dim=-1)
        kept, added = forget.sigmoid() * cell, enter.sigmoid() * candidate.tanh()
        steps.append((state, kept, added))
        cell = kept + added
        state = leave.sigmoid() * cell.tanh()
    # torch stacks in, forget, candidate, out; only the candidate passes relevance on
    inward, recurrent = own["weight_ih_l0"].chunk(4)[2], own["weight_hh_l0"].chunk(4)[2]
    bias = (own["bias_ih_l0"] + own["bias_hh_l0"]).chunk(4)[2]
    to_state = to_cell = torch.zeros_like(relevance[:, 0])
    to_words = torch.zeros_like(vectors)
    for place in reversed(range(len(steps))):
        before, kept, added = steps[place]
        to_cell = to_cell + to_state + relevance[:, place]
        to_cell, to_candidate = ledger.through_sum([kept, added], to_cell)
        parts = [(vectors[:, place], inward), (before, recurrent)]
        to_words[:, place], to_state = ledger.through_linear(parts, bias, to_candidate)
    ledger.add_rest(to_state + to_cell)  # the share of the initial state
    return to_words
