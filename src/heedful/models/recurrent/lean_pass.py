"""The logits of many variants of texts: what the variants share is computed once.

A variant is a text with some of its tokens deleted or masked. A check runs hundreds of them for
each text, and they repeat the same words again and again. What is computed once depends on the
encoder: the projected state of a word (word-wise), what a word adds to the states around it (cnn),
or the states of equal beginnings and of equal ends (bilstm). Where each word is left out once, or
where words are added one by one in random order, that is half of the steps of a bilstm.

The tokens of all variants are kept in one row, without padding: M tokens of N variants.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.core.batch import Batch
from heedful.models.recurrent.classifier import AttentionClassifier
from heedful.models.recurrent.encoders import CNN, BiLSTM
from heedful.numerics.tensor.distributions import masked_softmax


def run_variants(
    network: AttentionClassifier,
    batch: Batch,
    rows: Int[Tensor, "N"],
    kept: Bool[Tensor, "N T"],
    masked: Bool[Tensor, "N T"] | None = None,
) -> Float[Tensor, "N C"]:
    """Logits of texts rows[n] with the tokens kept[n] only; masked[n] have the zero vector."""
    used, rows = torch.unique(rows, return_inverse=True)
    batch = batch.select(used)
    variant, token = kept.nonzero(as_tuple=True)
    words, word = torch.unique(batch.ids[rows[variant], token], return_inverse=True)
    if masked is not None:
        word = word.masked_fill(masked[variant, token], len(words))
    tokens = _Tokens(
        word,
        variant,
        index=(kept.cumsum(-1) - 1)[variant, token],
        lengths=kept.sum(-1),
        attended=batch.mask[rows[variant], token],
    )
    vectors = nn.functional.pad(network.embedding(words), (0, 0, 0, 1))
    return _Variants(network, vectors, tokens).logits(batch, rows)


@dataclass(frozen=True, eq=False)
class _Tokens:
    """The tokens of all variants: `word` is the place of each among W words and the zero vector.

    `index` is the place of a token in its variant.
    """

    word: Int[Tensor, "M"]
    variant: Int[Tensor, "M"]
    index: Int[Tensor, "M"]
    lengths: Int[Tensor, "N"]
    attended: Bool[Tensor, "M"]

    @cached_property
    def place(self) -> tuple[Int[Tensor, "A"], Int[Tensor, "A"]]:
        """Variant and index of each attended token."""
        return self.variant[self.attended], self.index[self.attended]

    def reversed(self) -> "_Tokens":
        """The same variants, each from its end."""
        return replace(self, index=self.lengths[self.variant] - 1 - self.index)

    def padded(self, padding: int) -> Int[Tensor, "N T"]:
        """The words of each variant in a row of its own."""
        size = len(self.lengths), int(self.lengths.max())
        return self.word.new_full(size, padding).index_put((self.variant, self.index), self.word)


@dataclass(frozen=True, eq=False)
class _Variants:
    """Variants made of W words; the last vector is zero."""

    network: AttentionClassifier
    vectors: Float[Tensor, "V E"]
    tokens: _Tokens

    def logits(self, batch: Batch, rows: Int[Tensor, "N"]) -> Float[Tensor, "N C"]:
        """The logits of every variant; variant n has the question of text rows[n]."""
        network, (variant, _) = self.network, self.tokens.place
        question, allowed = network.encode_question(batch), batch.allowed
        asked = network.attention.project_question(question)
        split, projected = len(network.attention.projection()[0]), self._projected()
        scores = network.attention.score(
            projected[:, :split], None if asked is None else asked[rows[variant]]
        )
        values = projected[:, split:] * self._softmax(scores)[:, None]
        mixed = values.new_zeros(len(rows), values.shape[1]).index_add_(0, variant, values)
        decoder = network.decoder.prepare(
            mixed.new_zeros(len(rows), 0, network.encoder.width),
            None if question is None else question[rows],
            None if allowed is None else allowed[rows],
        )
        logits: Tensor = decoder.output(mixed)
        return logits

    def _softmax(self, scores: Float[Tensor, "A"]) -> Float[Tensor, "A"]:
        """Softmax over the attended tokens of each variant."""
        lengths, place = self.tokens.lengths, self.tokens.place
        table = scores.new_zeros(len(lengths), int(lengths.max()))
        here = torch.zeros_like(table, dtype=torch.bool)
        table[place], here[place] = scores, True
        return masked_softmax(table, here)[place]

    def _projected(self) -> Float[Tensor, "A R"]:
        """The attended states through all linear maps that the network needs, as one."""
        network = self.network
        weight, bias = network.attention.projection()
        output = network.decoder.state_weight()
        weight = torch.cat([weight, output])
        bias = torch.cat([bias, bias.new_zeros(len(output))])  # that of the output is added later
        encoder, tokens = network.encoder, self.tokens
        if isinstance(encoder, BiLSTM):
            half = encoder.ahead.hidden_size
            ahead = self._run_lstm(encoder.ahead, tokens, weight[:, :half], bias)
            behind = self._run_lstm(encoder.behind, tokens.reversed(), weight[:, half:], None)
            return ahead.add_(behind)
        if isinstance(encoder, CNN):
            return nn.functional.linear(self._run_cnn(encoder), weight, bias)
        every_word = torch.ones(1, len(self.vectors), dtype=torch.bool)
        states = encoder(self.vectors[None], every_word)[0]
        return nn.functional.linear(states, weight, bias)[tokens.word[tokens.attended]]

    def _run_lstm(
        self,
        lstm: nn.LSTM,
        tokens: _Tokens,
        projection: Float[Tensor, "R H"],
        bias: Float[Tensor, "R"] | None,
    ) -> Float[Tensor, "A R"]:
        """The projected states of one direction; each distinct beginning of a variant runs once."""
        steps, which = _distinct_beginnings(tokens.padded(-1), len(self.vectors))
        own = dict(lstm.named_parameters())
        both_biases = own["bias_ih_l0"] + own["bias_hh_l0"]
        inputs = nn.functional.linear(self.vectors, own["weight_ih_l0"], both_biases)
        hidden = cell = inputs.new_zeros(1, lstm.hidden_size)
        states = []
        for before, word in steps:
            gates = torch.addmm(inputs[word], hidden[before], own["weight_hh_l0"].T)
            hidden, cell = run_lstm_step(gates, cell[before])
            states.append(nn.functional.linear(hidden, projection, bias))
        return torch.cat(states)[which[tokens.place]]

    def _run_cnn(self, encoder: CNN) -> Float[Tensor, "A D"]:
        """The states as sums over their windows of what each word adds at each distance."""
        reach, nothing = max(encoder.kernels) // 2, len(self.vectors) - 1
        distances = range(-reach, reach + 1)
        added = torch.stack([self._added_at(encoder, distance) for distance in distances])
        words = nn.functional.pad(self.tokens.padded(nothing), (reach, reach), value=nothing)
        variant, index = self.tokens.place
        around = torch.arange(len(distances))
        window = words[variant[:, None], index[:, None] + around] + around * len(self.vectors)
        bias = torch.cat([layer.get_parameter("bias") for layer in encoder.convolutions])
        sums = nn.functional.embedding_bag(window, added.flatten(0, 1), mode="sum")
        return (sums + bias).relu_()

    def _added_at(self, encoder: CNN, distance: int) -> Float[Tensor, "V D"]:
        """What each word adds to the state `distance` tokens before it."""
        parts = []
        for kernel, layer in zip(encoder.kernels, encoder.convolutions, strict=True):
            near = abs(distance) <= kernel // 2
            weight = layer.get_parameter("weight")[:, :, distance + kernel // 2 if near else 0]
            parts.append(self.vectors @ weight.T * near)
        return torch.cat(parts, dim=1)


Step = tuple[Int[Tensor, "S"], Int[Tensor, "S"]]


def _distinct_beginnings(
    words: Int[Tensor, "N T"], count: int
) -> tuple[list[Step], Int[Tensor, "N T"]]:
    """The distinct first words of all sequences, the distinct first two words, and so on.

    Gives for each step which of the beginnings of the step before are continued, and by which word
    (below `count`; sequences end with −1); and the number of the beginning at each word.
    """
    which, steps, known = torch.full_like(words, -1), list[Step](), 0
    before = torch.zeros(len(words), dtype=torch.long)
    for step in range(words.shape[1]):
        active = (words[:, step] >= 0).nonzero().squeeze(-1)
        keys = before[active] * count + words[active, step]
        distinct, place = torch.unique(keys, return_inverse=True)
        steps.append((distinct // count, distinct % count))
        before[active] = place
        which[active, step] = place + known
        known += len(distinct)
    return steps, which


def run_lstm_step(
    gates: Float[Tensor, "S G"], cell: Float[Tensor, "S H"]
) -> tuple[Float[Tensor, "S H"], Float[Tensor, "S H"]]:
    """One LSTM step after its matrix products: the new hidden and cell states."""
    enter, forget, candidate, leave = gates.chunk(4, dim=-1)
    cell = torch.addcmul(enter.sigmoid() * candidate.tanh(), forget.sigmoid(), cell)
    return leave.sigmoid() * cell.tanh(), cell
