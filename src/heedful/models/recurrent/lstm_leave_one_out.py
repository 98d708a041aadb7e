"""The shared work of leave-one-out on a bidirectional LSTM.

Deleting token i leaves the forward states before i and the backward states after i as they were,
and no input projection W_ih x_t changes at all. So of a state [forward; backward] exactly one half
changes, the one that has passed i. One loop over time carries every changed variant as one batch:
variant i joins at step i from the shared state. That is half the steps of running each variant, and
a step costs the recurrent product alone. Attention and output layer read a half as soon as it is
there, beside the other half's unchanged reading, so no variant's states are ever kept.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.models.recurrent.encoders import BiLSTM

VariantCallback = Callable[[int, int, Float[Tensor, "V B R"]], None]
"""Told (token, first variant) and the readings of that token's state in the variants from there."""


@dataclass(frozen=True, slots=True, eq=False)
class _Direction:
    """One direction in its own order of time; gates are ordered in, forget, out, candidate."""

    inputs: Float[Tensor, "T B G"]
    recurrent: Float[Tensor, "H G"]
    reading: Float[Tensor, "H R"]
    alive: Float[Tensor, "T B 1"]  # 0 on padding: the state stays zero until the text begins
    hidden: Float[Tensor, "T1 B H"]  # of the undisturbed text, before each step and after the last
    cell: Float[Tensor, "T1 B H"]


def run_variants(
    encoder: BiLSTM,
    embedded: Float[Tensor, "B T E"],
    present: Bool[Tensor, "B T"],
    reading: Float[Tensor, "R D"],
    *,
    first: int,
    last: int,
    read: VariantCallback,
) -> None:
    """Give `read` the readings of every token's state in the variants first … last − 1."""
    H, T = encoder.ahead.hidden_size, embedded.shape[1]
    ahead = _prepare_direction(encoder.ahead, embedded, present, reading[:, :H])
    behind = _prepare_direction(encoder.behind, embedded.flip(1), present.flip(1), reading[:, H:])
    unchanged_ahead = ahead.hidden[1:] @ ahead.reading
    unchanged_behind = (behind.hidden[1:] @ behind.reading).flip(0)

    def from_ahead(step: int, changed: Float[Tensor, "V B R"]) -> None:
        read(step, first, changed + unchanged_behind[step])

    def from_behind(step: int, changed: Float[Tensor, "V B R"]) -> None:
        token, count = T - 1 - step, len(changed)
        read(token, last - count, changed.flip(0) + unchanged_ahead[token])

    _run_direction(ahead, first, last, from_ahead)
    _run_direction(behind, T - last, T - first, from_behind)


def _prepare_direction(
    lstm: nn.LSTM,
    embedded: Float[Tensor, "B T E"],
    present: Bool[Tensor, "B T"],
    reading: Float[Tensor, "R H"],
) -> _Direction:
    """Project the inputs once and run the undisturbed text, keeping its states."""
    own = {name: _out_before_candidate(one) for name, one in lstm.named_parameters()}
    weight, bias = own["weight_ih_l0"], own["bias_ih_l0"] + own["bias_hh_l0"]
    recurrent = own["weight_hh_l0"].T.contiguous()
    inputs = nn.functional.linear(embedded, weight, bias).transpose(0, 1).contiguous()
    alive = present.T[..., None].to(inputs.dtype)
    T, B, _ = inputs.shape
    hidden = inputs.new_zeros(T + 1, B, lstm.hidden_size)
    cell = torch.zeros_like(hidden)
    for step in range(T):
        gates = torch.addmm(inputs[step], hidden[step], recurrent)
        hidden[step + 1], cell[step + 1] = _lstm_step(gates, cell[step], alive[step])
    return _Direction(inputs, recurrent, reading.T.contiguous(), alive, hidden, cell)


def _out_before_candidate(weight: Float[Tensor, "G *E"]) -> Float[Tensor, "G *E"]:
    """torch stacks (in, forget, candidate, out); with out third, one sigmoid serves three gates."""
    enter, forget, candidate, leave = weight.chunk(4)
    return torch.cat([enter, forget, leave, candidate])


def _run_direction(
    run: _Direction, first: int, last: int, tell: Callable[[int, Float[Tensor, "V B R"]], None]
) -> None:
    """Step all variants that have passed their deletion; variant v deletes step first + v."""
    T, B, _ = run.inputs.shape
    h = run.inputs.new_zeros(last - first, B, run.hidden.shape[-1])
    c = torch.zeros_like(h)
    for step in range(first, T):
        active = min(step, last) - first
        if active:
            flat = (h[:active].view(active * B, -1) @ run.recurrent).view(active, B, -1)
            new = _lstm_step(flat.add_(run.inputs[step]), c[:active], run.alive[step])
            h[:active], c[:active] = new
            tell(step, h[:active] @ run.reading)
        if step < last:  # the variant that deletes this token goes on from the state before it
            h[step - first], c[step - first] = run.hidden[step], run.cell[step]


def _lstm_step(
    gates: Float[Tensor, "*V B G"], c: Float[Tensor, "*V B H"], alive: Float[Tensor, "B 1"]
) -> tuple[Float[Tensor, "*V B H"], Float[Tensor, "*V B H"]]:
    """One LSTM step after its matrix products; overwrites the gates."""
    H = c.shape[-1]
    enter, forget, leave = gates[..., : 3 * H].sigmoid_().chunk(3, dim=-1)
    candidate = gates[..., 3 * H :].tanh_()
    new_c = torch.addcmul(enter * candidate, forget, c).mul_(alive)
    return new_c.tanh().mul_(leave), new_c  # tanh(0) = 0: padding's state is zero already
