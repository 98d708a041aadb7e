"""The logits of many texts of few words: each word's input projection is computed once.

Sets of the words of a text, as the check `influence` runs them, repeat the same words again and
again. W_ih x, most of the work of an LSTM with wide word vectors, depends on the word alone.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.core.batch import Batch
from heedful.models.recurrent.classifier import AttentionClassifier
from heedful.models.recurrent.encoders import BiLSTM
from heedful.models.recurrent.fast_leave_one_out import run_lstm_step, sort_gates
from heedful.numerics.tensor.distributions import masked_softmax


def run_lean(network: AttentionClassifier, batch: Batch) -> Float[Tensor, "B C"]:
    """The logits of a network without a question, and nothing else."""
    words, place = torch.unique(batch.ids, return_inverse=True)
    vectors, encoder = network.embedding(words), network.encoder
    if isinstance(encoder, BiLSTM):
        states = _run_bilstm(encoder, vectors, place, batch.present)
    else:
        states = encoder(vectors[place], batch.present)
    weights = masked_softmax(network.scores(states, None), batch.mask)
    logits: Tensor = network.decoder.prepare(states)(weights)
    return logits


def _run_bilstm(
    encoder: BiLSTM,
    vectors: Float[Tensor, "W E"],
    place: Int[Tensor, "B T"],
    present: Bool[Tensor, "B T"],
) -> Float[Tensor, "B T D"]:
    """The states of all texts; `place` is the row of each word among the vectors."""
    position = torch.arange(place.shape[1], device=place.device)
    back = torch.where(present, present.sum(-1, keepdim=True) - 1 - position, position)
    ahead = _run_lstm(encoder.ahead, vectors, place)
    behind = _run_lstm(encoder.behind, vectors, place.gather(1, back))
    behind = behind.gather(1, back[..., None].expand_as(behind))
    return torch.cat([ahead, behind], dim=-1) * present[..., None]


def _run_lstm(
    lstm: nn.LSTM, vectors: Float[Tensor, "W E"], place: Int[Tensor, "B T"]
) -> Float[Tensor, "B T H"]:
    """The states of one direction, step by step over all texts; padding comes last."""
    weight, bias, recurrent = sort_gates(lstm)
    inputs = nn.functional.linear(vectors, weight, bias)
    B, T = place.shape
    states = inputs.new_empty(T, B, lstm.hidden_size)
    hidden = inputs.new_zeros(B, lstm.hidden_size)
    cell, alive = torch.zeros_like(hidden), inputs.new_ones(B, 1)
    for step in range(T):
        gates = torch.addmm(inputs[place[:, step]], hidden, recurrent)
        hidden, cell = run_lstm_step(gates, cell, alive)
        states[step] = hidden
    return states.transpose(0, 1)
