"""Leave each token out of an attention classifier without running every variant from scratch.

Variant i is the text with token i deleted. Its tokens keep their old positions here, since only
their neighbourhood matters, and position i is left out of the softmax. What changes depends on the
encoder: only the softmax (word-wise), a window of ± 3 (cnn), or the forward states after i and the
backward states before i (bilstm). A question changes none of this: states do not depend on it.

In a bilstm deleting token i keeps the forward states before i, the backward states after i, and
every input projection W_ih x_t. So exactly one half of a state [forward; backward] changes, the one
that has passed i. One loop over time carries all changed variants as one batch: variant i joins at
step i from the shared state. That is half the steps of running each variant, and a step costs the
recurrent product alone. Each half is projected as soon as it is computed and added to the unchanged
projection of the other half, so the states of a variant are never stored.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.core.batch import Batch
from heedful.models.recurrent.classifier import AttentionClassifier
from heedful.models.recurrent.encoders import CNN, BiLSTM
from heedful.numerics.tensor.distributions import masked_softmax

MAX_VARIANTS = 1024  # variants run at once: their states still fit the cache


def logits_without_each(
    network: AttentionClassifier, batch: Batch, *, max_batch_tokens: int
) -> Float[Tensor, "B T C"]:
    """Logits with token t deleted, for each t in the mask; zeros elsewhere."""
    question, embedded = network.encode_question(batch), network.embed(batch.ids)
    result = embedded.new_zeros(*batch.mask.shape, network.shape.classes)
    for rows, first, last in split_deletions(
        network.encoder, batch.mask, max_batch_tokens=max_batch_tokens
    ):
        texts = batch.select(torch.arange(len(batch))[rows])
        own_question = None if question is None else question[rows]
        variants = _Variants(network, texts, embedded[rows], own_question, first, last)
        result[rows, first:last] = variants.logits()
    return result.masked_fill(~batch.mask[..., None], 0.0)


def split_deletions(
    encoder: nn.Module, mask: Bool[Tensor, "B T"], *, max_batch_tokens: int
) -> Iterator[tuple[slice, int, int]]:
    """Split B texts × T deletions into (texts, first, last) blocks of bounded size.

    Texts are taken together while all their variants fit; a longer text gets blocks of deletions,
    so memory does not grow with the square of its length.
    """
    count, width = mask.shape
    deleted = mask.any(0).nonzero().squeeze(-1).tolist()  # special tokens are never deleted
    if not deleted:
        return
    # the bilstm holds one token of each variant at a time, the others all of them
    size = 1 if isinstance(encoder, BiLSTM) else width
    at_once = max(1, min(max_batch_tokens, MAX_VARIANTS * size) // size)
    together = max(1, at_once // width)
    for row in range(0, count, together):
        for first in range(deleted[0], deleted[-1] + 1, at_once):
            last = min(first + at_once, deleted[-1] + 1)
            yield slice(row, min(row + together, count)), first, last


@dataclass(frozen=True, eq=False)
class _Variants:
    """The variants first … last − 1 of some texts."""

    network: AttentionClassifier
    batch: Batch
    embedded: Float[Tensor, "B T E"]
    question: Float[Tensor, "B D"] | None
    first: int
    last: int

    @cached_property
    def split(self) -> int:
        """How many rows of `weight` are the attention's; the others are the output layer's."""
        return len(self.network.attention.projection()[0])

    @cached_property
    def weight(self) -> Float[Tensor, "R D"]:
        """All linear maps of a state that the network needs, as one."""
        weight = self.network.attention.projection()[0]
        return torch.cat([weight, self.network.decoder.state_weight()])

    @cached_property
    def bias(self) -> Float[Tensor, "R"]:
        """Without that of the output layer, which is added once, also where no token is left."""
        bias = self.network.attention.projection()[1]
        return torch.cat([bias, bias.new_zeros(len(self.weight) - self.split)])

    @cached_property
    def projected_question(self) -> Float[Tensor, "B A"] | None:
        projected: Tensor | None = self.network.attention.project_question(self.question)
        return projected

    def logits(self) -> Float[Tensor, "B V C"]:
        """The logits of every variant."""
        no_states = self.embedded.new_zeros(len(self.batch), 0, self.weight.shape[1])
        decoder = self.network.decoder.prepare(no_states, self.question, self.batch.allowed)
        bilstm = isinstance(self.network.encoder, BiLSTM)
        return decoder.output(self._mixed_online() if bilstm else self._mixed()).transpose(0, 1)

    def _mixed(self) -> Float[Tensor, "V B O"]:
        """The projected states of the output layer, weighted by attention."""
        encoder = self.network.encoder
        states = encoder(self.embedded, self.batch.present)
        base = nn.functional.linear(states, self.weight, self.bias)
        projected = base[:, None].expand(-1, self.last - self.first, -1, -1)
        if isinstance(encoder, CNN):
            projected = self._recompute_windows(encoder, projected)
        question = self.projected_question
        question = None if question is None else question[:, None, None]
        scores = self.network.attention.score(projected[..., : self.split], question)
        positions = torch.arange(self.batch.mask.shape[1], device=scores.device)
        deleted = torch.arange(self.first, self.last, device=scores.device)[:, None] == positions
        weights = masked_softmax(scores, self.batch.mask[:, None] & ~deleted)
        return torch.einsum("bvt,bvto->vbo", weights, projected[..., self.split :])

    def _recompute_windows(
        self, encoder: CNN, projected: Float[Tensor, "B V T R"]
    ) -> Float[Tensor, "B V T R"]:
        """Recompute the states whose window includes the deleted token, and put them in place."""
        reach = max(encoder.kernels) // 2
        B, V, _, R = projected.shape
        around = torch.cat([torch.arange(-2 * reach, 0), torch.arange(1, 2 * reach + 1)])
        near = around[reach:-reach]  # offsets of the states that change
        deleted = torch.arange(self.first, self.last)
        real = self.embedded * self.batch.present[..., None]
        padded = nn.functional.pad(real, (0, 0, 2 * reach, 2 * reach))
        windows = padded[:, deleted[:, None] + around + 2 * reach].flatten(0, 1)
        everywhere = windows.new_ones(windows.shape[:2], dtype=torch.bool)
        states = encoder(windows, everywhere)[:, reach:-reach]
        changed = nn.functional.linear(states, self.weight, self.bias).view(B, V, len(near), R)
        roomy = nn.functional.pad(projected, (0, 0, reach, reach))  # windows may cross the edges
        index = (deleted[:, None] + near + reach)[None, :, :, None].expand(B, V, len(near), R)
        return roomy.scatter(2, index, changed)[:, :, reach:-reach]

    def _mixed_online(self) -> Float[Tensor, "V B O"]:
        """As `_mixed`, token by token: with a question values are too wide to store for all.

        Sums are kept relative to the largest score so far, so that none overflows.
        """
        (B, _, _), V = self.embedded.shape, self.last - self.first
        mixed = self.embedded.new_zeros(V, B, len(self.weight) - self.split)
        total, limits = torch.zeros_like(mixed[..., 0]), torch.finfo(mixed.dtype)
        top = torch.full_like(total, limits.min)
        for token, here, projected in self._run_bilstm():
            counted = self.batch.mask[:, token]
            scores = self.network.attention.score(
                (projected + self.bias)[..., : self.split], self.projected_question
            )
            highest = torch.where(counted, torch.maximum(top[here], scores), top[here])
            shrink = (top[here] - highest).exp()
            weight = torch.where(counted, (scores - highest).exp(), 0.0)
            top[here] = highest
            total[here] = total[here] * shrink + weight
            values = projected[..., self.split :] * weight[..., None]
            mixed[here] = mixed[here] * shrink[..., None] + values
        return mixed / total.clamp(min=limits.tiny)[..., None]

    def _run_bilstm(self) -> Iterator[tuple[int, slice, Float[Tensor, "V B R"]]]:
        """Each token with the variants it is in, and its projected state in them."""
        encoder, present = self.network.encoder, self.batch.present
        H, T = encoder.ahead.hidden_size, self.embedded.shape[1]
        ahead = _prepare_direction(encoder.ahead, self.embedded, present, self.weight[:, :H])
        behind = _prepare_direction(
            encoder.behind, self.embedded.flip(1), present.flip(1), self.weight[:, H:]
        )
        unchanged_ahead = ahead.hidden[1:] @ ahead.projection
        unchanged_behind = (behind.hidden[1:] @ behind.projection).flip(0)
        for step, changed in _run_direction(ahead, self.first, self.last):
            yield step, slice(0, len(changed)), changed + unchanged_behind[step]
        V = self.last - self.first
        for step, changed in _run_direction(behind, T - self.last, T - self.first):
            token = T - 1 - step
            here = slice(V - len(changed), V)
            yield token, here, changed.flip(0) + unchanged_ahead[token]


@dataclass(frozen=True, slots=True, eq=False)
class _Direction:
    """One direction in its own order of time; gates are ordered in, forget, out, candidate."""

    inputs: Float[Tensor, "T B G"]
    recurrent: Float[Tensor, "H G"]
    projection: Float[Tensor, "H R"]
    alive: Float[Tensor, "T B 1"]  # 0 on padding: the state stays zero until the text begins
    hidden: Float[Tensor, "T1 B H"]  # of the whole text, before each step and after the last
    cell: Float[Tensor, "T1 B H"]


def _prepare_direction(
    lstm: nn.LSTM,
    embedded: Float[Tensor, "B T E"],
    present: Bool[Tensor, "B T"],
    projection: Float[Tensor, "R H"],
) -> _Direction:
    """Project the inputs once and run the whole text, keeping its states."""
    weight, bias, recurrent = sort_gates(lstm)
    inputs = nn.functional.linear(embedded, weight, bias).transpose(0, 1).contiguous()
    alive = present.T[..., None].to(inputs.dtype)
    T, B, _ = inputs.shape
    hidden = inputs.new_zeros(T + 1, B, lstm.hidden_size)
    cell = torch.zeros_like(hidden)
    for step in range(T):
        gates = torch.addmm(inputs[step], hidden[step], recurrent)
        hidden[step + 1], cell[step + 1] = run_lstm_step(gates, cell[step], alive[step])
    return _Direction(inputs, recurrent, projection.T.contiguous(), alive, hidden, cell)


def sort_gates(
    lstm: nn.LSTM,
) -> tuple[Float[Tensor, "G E"], Float[Tensor, "G"], Float[Tensor, "H G"]]:
    """Input weights, both biases added, and recurrent weights, gates in the order of the steps."""
    # torch stacks (in, forget, candidate, out); with out third, one sigmoid serves three gates
    own = {
        name: torch.cat([weight.chunk(4)[gate] for gate in (0, 1, 3, 2)])
        for name, weight in lstm.named_parameters()
    }
    bias = own["bias_ih_l0"] + own["bias_hh_l0"]
    return own["weight_ih_l0"], bias, own["weight_hh_l0"].T.contiguous()


def _run_direction(
    run: _Direction, first: int, last: int
) -> Iterator[tuple[int, Float[Tensor, "V B R"]]]:
    """Each step and the projected states of the variants that have passed their deletion.

    Variant v deletes step first + v.
    """
    T, B, _ = run.inputs.shape
    h = run.inputs.new_zeros(last - first, B, run.hidden.shape[-1])
    c = torch.zeros_like(h)
    for step in range(first, T):
        active = min(step, last) - first
        if active:
            flat = (h[:active].view(active * B, -1) @ run.recurrent).view(active, B, -1)
            new = run_lstm_step(flat.add_(run.inputs[step]), c[:active], run.alive[step])
            h[:active], c[:active] = new
            yield step, h[:active] @ run.projection
        if step < last:  # the variant that deletes this token continues from the state before it
            h[step - first], c[step - first] = run.hidden[step], run.cell[step]


def run_lstm_step(
    gates: Float[Tensor, "*V B G"], c: Float[Tensor, "*V B H"], alive: Float[Tensor, "#B 1"]
) -> tuple[Float[Tensor, "*V B H"], Float[Tensor, "*V B H"]]:
    """One LSTM step after its matrix products; overwrites the gates."""
    H = c.shape[-1]
    enter, forget, leave = gates[..., : 3 * H].sigmoid_().chunk(3, dim=-1)
    candidate = gates[..., 3 * H :].tanh_()
    new_c = torch.addcmul(enter * candidate, forget, c).mul_(alive)
    return new_c.tanh().mul_(leave), new_c  # tanh(0) = 0: the state of padding is already zero
