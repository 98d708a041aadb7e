"""Layer-wise relevance propagation through the attention classifiers (Arras et al., 2017).

In z = Σ w x + b each x gets the share w x / (z + ε sign z) of the relevance of z; sign 0 is 1. A
gate times a signal gives all to the signal, and tanh and relu pass on what they get: so the
relevance of an LSTM state goes to its cell, from there to the previous cell and to the candidate,
and from the candidate to the word and the previous state. Attention is a gate of the states.

The share of b and ε is lost, or spread evenly over all inputs by `bias_factor`; a ledger records
what is lost.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedful.core.batch import Batch
from heedful.core.errors import NotApplicable
from heedful.core.values import Forward
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


@dataclass(frozen=True, eq=False)
class RecurrentPass:
    """Texts, the vectors of their words, and the forward pass on them."""

    batch: Batch
    vectors: Float[Tensor, "B T E"]
    forward: Forward


def word_relevance(
    network: AttentionClassifier,
    run: RecurrentPass,
    *,
    start: Float[Tensor, "B C"],
    ledger: RelevanceLedger,
) -> Float[Tensor, "B T E"]:
    """Relevance of each component of the word vectors; `start` is the relevance of the logits."""
    batch, vectors, forward = run.batch, run.vectors, run.forward
    states, weights = forward.states.double(), forward.attention.double()
    pooled = torch.einsum("bt,btd->bd", weights, states)
    if isinstance(network.decoder, QueryOutput):
        down = _through_question(network.decoder, pooled, forward, start, ledger)
    else:
        weight, bias = (parameter.double() for parameter in network.decoder.class_weights())
        (down,) = ledger.through_linear([(pooled, weight)], bias, start)
    relevance = ledger.through_mixture(weights, states, down)
    encoder = network.encoder
    if isinstance(encoder, BiLSTM):
        return _through_lstms(encoder, vectors, batch, relevance, ledger)
    if isinstance(encoder, CNN):
        return _through_cnn(encoder, vectors, batch, relevance, ledger)
    if isinstance(encoder, Average):
        return _through_layers([encoder.project], vectors, relevance, ledger)
    if isinstance(encoder, MLP):
        linear = [layer for layer in encoder.layers if isinstance(layer, nn.Linear)]
        return _through_layers(linear, vectors, relevance, ledger)
    raise NotApplicable(f"lrp has no rules for the encoder {type(encoder).__name__}.")


def _through_question(
    output: QueryOutput, pooled: Tensor, forward: Forward, start: Tensor, ledger: RelevanceLedger
) -> Float[Tensor, "B D"]:
    """Propagate from the logits to the attended state; the share of the question is lost."""
    if forward.question is None:
        raise RuntimeError("The pass of a model with a query must keep the encoded question.")
    question = forward.question.double()
    parts = [(pooled, output.text.weight.double()), (question, output.question.weight.double())]
    bias = (output.text.bias + output.question.bias).double()
    inner = sum((x @ weight.T for x, weight in parts), start=bias).tanh()
    last = output.out
    (down,) = ledger.through_linear([(inner, last.weight.double())], last.bias.double(), start)
    to_text, to_question = ledger.through_linear(parts, bias, down)
    ledger.add_rest(to_question)
    return to_text


def _through_layers(
    layers: Sequence[nn.Linear], vectors: Tensor, relevance: Tensor, ledger: RelevanceLedger
) -> Float[Tensor, "B T E"]:
    """Propagate word by word through linear maps, each followed by tanh."""
    entered = [vectors]
    for layer in layers[:-1]:
        entered.append((entered[-1] @ layer.weight.double().T + layer.bias.double()).tanh())
    for layer, x in zip(reversed(layers), reversed(entered), strict=True):
        (relevance,) = ledger.through_linear(
            [(x, layer.weight.double())], layer.bias.double(), relevance
        )
    return relevance


def _through_cnn(
    encoder: CNN, vectors: Tensor, batch: Batch, relevance: Tensor, ledger: RelevanceLedger
) -> Float[Tensor, "B T E"]:
    """Each convolution is a linear map of its window; relevance outside the text is lost."""
    length, most = vectors.shape[1], max(encoder.kernels) // 2
    inside = batch.present[..., None].to(vectors)
    wide = nn.functional.pad(vectors * inside, (0, 0, most, most))
    relevance_at = torch.zeros_like(wide)
    each = relevance.chunk(len(encoder.kernels), dim=-1)
    for width, layer, down in zip(encoder.kernels, encoder.convolutions, each, strict=True):
        own = {name: weight.double() for name, weight in layer.named_parameters()}
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


def _through_lstms(
    encoder: BiLSTM, vectors: Tensor, batch: Batch, relevance: Tensor, ledger: RelevanceLedger
) -> Float[Tensor, "B T E"]:
    """Both directions, the second on reversed texts."""
    ahead, behind = relevance.chunk(2, dim=-1)
    first = _through_lstm(encoder.ahead, vectors, ahead, ledger)
    back = reverse_texts(vectors, batch.present), reverse_texts(behind, batch.present)
    return first + reverse_texts(_through_lstm(encoder.behind, *back, ledger), batch.present)


def _through_lstm(
    lstm: nn.LSTM,
    vectors: Float[Tensor, "B T E"],
    relevance: Float[Tensor, "B T H"],
    ledger: RelevanceLedger,
) -> Float[Tensor, "B T E"]:
    """Propagate from states to words, from the last step to the first."""
    own = {name: weight.detach().double() for name, weight in lstm.named_parameters()}
    inward, recurrent = own["weight_ih_l0"].chunk(4)[2], own["weight_hh_l0"].chunk(4)[2]
    bias = (own["bias_ih_l0"] + own["bias_hh_l0"]).chunk(4)[2]  # in, forget, candidate, out
    steps = _lstm_steps(own, vectors)
    to_state = to_cell = torch.zeros_like(relevance[:, 0])
    to_words = torch.zeros_like(vectors)
    for place in reversed(range(vectors.shape[1])):
        step = steps[place]
        to_cell = to_cell + to_state + relevance[:, place]
        to_cell, to_candidate = ledger.through_sum([step.kept, step.added], to_cell)
        parts = [(vectors[:, place], inward), (step.before, recurrent)]
        to_words[:, place], to_state = ledger.through_linear(parts, bias, to_candidate)
    ledger.add_rest(to_state + to_cell)  # the share of the initial state
    return to_words


@dataclass(frozen=True, eq=False)
class _LSTMStep:
    """The state before a step, and the two parts of the cell after it."""

    before: Float[Tensor, "B H"]
    kept: Float[Tensor, "B H"]
    added: Float[Tensor, "B H"]


def _lstm_steps(own: dict[str, Tensor], vectors: Float[Tensor, "B T E"]) -> list[_LSTMStep]:
    state = cell = vectors.new_zeros(len(vectors), own["weight_hh_l0"].shape[1])
    read = vectors @ own["weight_ih_l0"].T + own["bias_ih_l0"] + own["bias_hh_l0"]
    steps = []
    for each in read.unbind(1):
        enter, forget, candidate, leave = (each + state @ own["weight_hh_l0"].T).chunk(4, dim=-1)
        step = _LSTMStep(state, forget.sigmoid() * cell, enter.sigmoid() * candidate.tanh())
        cell = step.kept + step.added
        state = leave.sigmoid() * cell.tanh()
        steps.append(step)
    return steps
