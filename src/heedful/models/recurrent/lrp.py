"""Relevance handed down through the attention classifiers of the 2019 papers (Arras et al., 2017).

Of z = Σ w x + b each x gets its share w x / (z + ε sign z) of the relevance of z; sign 0 is 1. A
gate times a signal gives all to the signal, tanh and relu pass on what they get: so the relevance
of a state of an LSTM goes to its cell, from there to the cell before it and to the candidate, and
from the candidate to the word and the state before it. Attention is a gate of the states.

What b and ε take goes to nobody, or by `bias_factor` to all inputs alike; the book is kept.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedful.core.batch import Batch
from heedful.core.errors import NotApplicable
from heedful.core.values import Forward
from heedful.models.recurrent.classifier import AttentionClassifier
from heedful.models.recurrent.encoders import CNN, MLP, Average, BiLSTM, reverse_texts
from heedful.models.recurrent.query_classifier import Network, QueryOutput


@dataclass(eq=False)
class RelevanceLedger:
    """The rules, and what of the relevance of each text never reaches a word."""

    epsilon: float
    bias_factor: float
    rest: Float[Tensor, "B"] = field(default_factory=lambda: torch.zeros(1, dtype=torch.float64))

    def through_linear(
        self,
        parts: Sequence[tuple[Tensor, Float[Tensor, "M _"]]],
        bias: Float[Tensor, "M"],
        relevance: Float[Tensor, "B *K M"],
    ) -> list[Tensor]:
        """From Σ W x + b down to every x."""
        total = sum((x @ weight.T for x, weight in parts), start=bias)
        ratio, spare = self._ratio(total, bias, relevance)
        share = self._share(spare, sum(x.shape[-1] for x, _ in parts))
        return [x * (ratio @ weight) + share for x, weight in parts]

    def through_sum(self, parts: Sequence[Tensor], relevance: Float[Tensor, "B D"]) -> list[Tensor]:
        """From a sum of vectors down to each of them."""
        ratio, spare = self._ratio(sum(parts[1:], start=parts[0]), None, relevance)
        share = self._share(spare, len(parts) * relevance.shape[-1])
        return [part * ratio + share for part in parts]

    def through_mixture(
        self, weights: Float[Tensor, "B T"], states: Float[Tensor, "B T D"], relevance: Tensor
    ) -> Float[Tensor, "B T D"]:
        """From Σ_t α_t h_t down to every state that is attended to."""
        parts, here = weights[..., None] * states, (weights > 0)[..., None]
        ratio, spare = self._ratio(parts.sum(1), None, relevance)
        units = here.sum((1, 2), keepdim=True) * states.shape[-1]
        return parts * ratio[:, None] + here * self._share(spare[:, None], units)

    def leave(self, relevance: Float[Tensor, "B ..."]) -> None:
        """What goes to no word."""
        self.rest = self.rest + relevance.flatten(1).sum(-1)

    def _ratio(
        self, total: Tensor, bias: Tensor | None, relevance: Tensor
    ) -> tuple[Tensor, Float[Tensor, "B *K 1"]]:
        """Relevance for each unit of a sum, and what of it bias and stabiliser take."""
        steady = self.epsilon * torch.where(total >= 0, 1.0, -1.0).to(total)
        ratio = relevance / (total + steady)
        own = steady if bias is None else steady + bias
        return ratio, (own * ratio).sum(-1, keepdim=True)

    def _share(self, spare: Float[Tensor, "B *K 1"], units: int | Tensor) -> Tensor:
        """What every input gets of what bias and stabiliser take; the rest is left."""
        self.leave((1 - self.bias_factor) * spare)
        return self.bias_factor * spare / units


@dataclass(frozen=True, eq=False)
class RecurrentPass:
    """Texts, the vectors of their words, and what a pass made of them."""

    batch: Batch
    vectors: Float[Tensor, "B T E"]
    forward: Forward


def word_relevance(
    network: Network, read: RecurrentPass, *, start: Float[Tensor, "B C"], book: RelevanceLedger
) -> Float[Tensor, "B T E"]:
    """Relevance of each number of the word vectors; `start` is that of the logits."""
    batch, vectors, forward = read.batch, read.vectors, read.forward
    states, weights = forward.states.double(), forward.attention.double()
    pooled = torch.einsum("bt,btd->bd", weights, states)
    if isinstance(network, AttentionClassifier):
        weight, bias = (one.double() for one in network.class_weights())
        (down,) = book.through_linear([(pooled, weight)], bias, start)
    else:
        down = _through_question(network.decoder, pooled, forward, start, book)
    relevance = book.through_mixture(weights, states, down)
    encoder = network.encoder
    if isinstance(encoder, BiLSTM):
        return _through_lstms(encoder, vectors, batch, relevance, book)
    if isinstance(encoder, CNN):
        return _through_cnn(encoder, vectors, batch, relevance, book)
    if isinstance(encoder, Average):
        return _through_layers([encoder.project], vectors, relevance, book)
    if isinstance(encoder, MLP):
        linear = [one for one in encoder.layers if isinstance(one, nn.Linear)]
        return _through_layers(linear, vectors, relevance, book)
    raise NotApplicable(f"lrp knows no rules for the encoder {type(encoder).__name__}.")


def _through_question(
    output: QueryOutput, pooled: Tensor, forward: Forward, start: Tensor, book: RelevanceLedger
) -> Float[Tensor, "B D"]:
    """From the logits to what attention made of the text; the question's part is no word's."""
    if forward.question is None:
        raise RuntimeError("A pass with a question must show it.")
    asked = forward.question.double()
    parts = [(pooled, output.text.weight.double()), (asked, output.question.weight.double())]
    bias = (output.text.bias + output.question.bias).double()
    inner = sum((x @ weight.T for x, weight in parts), start=bias).tanh()
    last = output.out
    (down,) = book.through_linear([(inner, last.weight.double())], last.bias.double(), start)
    text, question = book.through_linear(parts, bias, down)
    book.leave(question)
    return text


def _through_layers(
    layers: Sequence[nn.Linear], vectors: Tensor, relevance: Tensor, book: RelevanceLedger
) -> Float[Tensor, "B T E"]:
    """Word by word through linear maps with tanh behind each."""
    entered = [vectors]
    for layer in layers[:-1]:
        entered.append((entered[-1] @ layer.weight.double().T + layer.bias.double()).tanh())
    for layer, x in zip(reversed(layers), reversed(entered), strict=True):
        (relevance,) = book.through_linear(
            [(x, layer.weight.double())], layer.bias.double(), relevance
        )
    return relevance


def _through_cnn(
    encoder: CNN, vectors: Tensor, batch: Batch, relevance: Tensor, book: RelevanceLedger
) -> Float[Tensor, "B T E"]:
    """Each convolution as one linear map of its window; what falls beside the text is left."""
    length, most = vectors.shape[1], max(encoder.kernels) // 2
    inside = batch.present[..., None].to(vectors)
    wide = nn.functional.pad(vectors * inside, (0, 0, most, most))
    found = torch.zeros_like(wide)
    each = relevance.chunk(len(encoder.kernels), dim=-1)
    for width, layer, down in zip(encoder.kernels, encoder.convolutions, each, strict=True):
        own = {name: one.double() for name, one in layer.named_parameters()}
        first = most - width // 2
        places = [slice(first + step, first + step + length) for step in range(width)]
        maps = own["weight"].unbind(-1)
        parts = [(wide[:, at], one) for at, one in zip(places, maps, strict=True)]
        pieces = book.through_linear(parts, own["bias"], down)
        for at, piece in zip(places, pieces, strict=True):
            found[:, at] += piece
    words = found[:, most : most + length] * inside
    book.leave(found.flatten(1).sum(-1, keepdim=True) - words.flatten(1).sum(-1, keepdim=True))
    return words


def _through_lstms(
    encoder: BiLSTM, vectors: Tensor, batch: Batch, relevance: Tensor, book: RelevanceLedger
) -> Float[Tensor, "B T E"]:
    """Both directions, the second on each text turned round."""
    ahead, behind = relevance.chunk(2, dim=-1)
    first = _through_lstm(encoder.ahead, vectors, ahead, book)
    back = reverse_texts(vectors, batch.present), reverse_texts(behind, batch.present)
    return first + reverse_texts(_through_lstm(encoder.behind, *back, book), batch.present)


def _through_lstm(
    lstm: nn.LSTM,
    vectors: Float[Tensor, "B T E"],
    relevance: Float[Tensor, "B T H"],
    book: RelevanceLedger,
) -> Float[Tensor, "B T E"]:
    """From states to words, from the last step to the first."""
    own = {name: one.detach().double() for name, one in lstm.named_parameters()}
    reading, recurrent = own["weight_ih_l0"].chunk(4)[2], own["weight_hh_l0"].chunk(4)[2]
    bias = (own["bias_ih_l0"] + own["bias_hh_l0"]).chunk(4)[2]  # in, forget, candidate, out
    steps = _lstm_steps(own, vectors)
    to_state = to_cell = torch.zeros_like(relevance[:, 0])
    found = torch.zeros_like(vectors)
    for place in reversed(range(vectors.shape[1])):
        step = steps[place]
        to_cell = to_cell + to_state + relevance[:, place]
        to_cell, to_candidate = book.through_sum([step.kept, step.added], to_cell)
        parts = [(vectors[:, place], reading), (step.before, recurrent)]
        found[:, place], to_state = book.through_linear(parts, bias, to_candidate)
    book.leave(to_state + to_cell)  # which the first step was given
    return found


@dataclass(frozen=True, eq=False)
class _LSTMStep:
    """The state before a step, and the two parts of the cell after it."""

    before: Float[Tensor, "B H"]
    kept: Float[Tensor, "B H"]
    added: Float[Tensor, "B H"]


def _lstm_steps(own: dict[str, Tensor], vectors: Float[Tensor, "B T E"]) -> list[_LSTMStep]:
    state = cell = vectors.new_zeros(len(vectors), own["weight_hh_l0"].shape[1])
    read = vectors @ own["weight_ih_l0"].T + own["bias_ih_l0"] + own["bias_hh_l0"]
    made = []
    for each in read.unbind(1):
        enter, forget, candidate, leave = (each + state @ own["weight_hh_l0"].T).chunk(4, dim=-1)
        step = _LSTMStep(state, forget.sigmoid() * cell, enter.sigmoid() * candidate.tanh())
        cell = step.kept + step.added
        state = leave.sigmoid() * cell.tanh()
        made.append(step)
    return made
