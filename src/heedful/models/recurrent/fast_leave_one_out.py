"""Leave each token out of an attention classifier without running every variant from scratch.

Variant i is the text with token i deleted. Its tokens keep their old positions here, since only
their neighbourhood matters, and position i is left out of the softmax. What changes depends on the
encoder: nothing but the softmax (word-wise), a window of ± 3 (cnn), or the forward states after i
and the backward states before i (bilstm).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.models.recurrent.classifier import AttentionClassifier
from heedful.models.recurrent.encoders import CNN, BiLSTM
from heedful.models.recurrent.lstm_leave_one_out import run_variants
from heedful.numerics.tensor.distributions import masked_softmax

MAX_VARIANTS = 1024  # at once: their states still fit the cache


@dataclass(frozen=True, slots=True, eq=False)
class StateProjection:
    """All that attention and output layer read of a state, as one linear map.

    The first `split` readings are attention's, with its bias; the others are the output layer's,
    without its own: that is added once, also where no token is left to attend to.
    """

    weight: Float[Tensor, "R D"]
    bias: Float[Tensor, "R"]
    split: int

    @classmethod
    def of(
        cls,
        attention: tuple[Float[Tensor, "A D"], Float[Tensor, "A"]],
        output: Float[Tensor, "O D"],
    ) -> "StateProjection":
        """From attention's linear part and the output layer's weight."""
        weight, bias = attention
        both = torch.cat([bias, bias.new_zeros(len(output))])
        return cls(torch.cat([weight, output]), both, len(weight))


def logits_without_each(
    model: AttentionClassifier,
    embedded: Float[Tensor, "B T E"],
    present: Bool[Tensor, "B T"],
    mask: Bool[Tensor, "B T"],
    *,
    max_batch_tokens: int,
) -> Float[Tensor, "B T C"]:
    """Logits with token t deleted, for each t in the mask; zeros elsewhere."""
    class_weight, class_bias = model.class_weights()
    reader = StateProjection.of(model.attention.reading(), class_weight)
    result = embedded.new_zeros(*mask.shape, model.shape.classes)
    for rows, first, last in split_deletions(
        model.encoder, mask, max_batch_tokens=max_batch_tokens
    ):
        scores, values = _project_variants(
            model, reader, embedded[rows], present[rows], first, last
        )
        others = mask[rows][:, None, :] & ~deleted_token_mask(
            first, last, mask.shape[1], mask.device
        )
        weights = masked_softmax(scores, others)
        mixed = torch.einsum("bvt,bvtc->bvc", weights, values)
        result[rows, first:last] = mixed + class_bias
    return result.masked_fill(~mask[..., None], 0.0)


def split_deletions(
    encoder: nn.Module, mask: Bool[Tensor, "B T"], *, max_batch_tokens: int
) -> Iterator[tuple[slice, int, int]]:
    """Cut B texts × T deletions into (texts, first, last) blocks of bounded size.

    Texts are taken together while all their variants fit; a text too long for that gets blocks of
    deletions, so memory does not grow with the square of its length.
    """
    count, width = mask.shape
    deleted = mask.any(0).nonzero().squeeze(-1).tolist()  # nobody asks for texts without <SOS>
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


def deleted_token_mask(
    first: int, last: int, width: int, device: torch.device
) -> Bool[Tensor, "V T"]:
    """Marks the deleted token of each variant."""
    deleted = torch.arange(first, last, device=device)[:, None]
    return deleted == torch.arange(width, device=device)


def _project_variants(
    model: AttentionClassifier,
    reader: StateProjection,
    embedded: Float[Tensor, "B T E"],
    present: Bool[Tensor, "B T"],
    first: int,
    last: int,
) -> tuple[Float[Tensor, "B V T"], Float[Tensor, "B V T C"]]:
    """Attention scores and contributions of every token in the variants first … last − 1."""
    if isinstance(model.encoder, BiLSTM):
        return _project_bilstm_variants(model, reader, embedded, present, first, last)
    states = model.encoder(embedded, present)
    base = nn.functional.linear(states, reader.weight, reader.bias)
    read = base[:, None].expand(-1, last - first, -1, -1)
    if isinstance(model.encoder, CNN):
        real = embedded * present[..., None]
        read = recompute_windows(model.encoder, reader, real, read, first)
    return model.attention.score(read[..., : reader.split]), read[..., reader.split :]


def _project_bilstm_variants(
    model: AttentionClassifier,
    reader: StateProjection,
    embedded: Float[Tensor, "B T E"],
    present: Bool[Tensor, "B T"],
    first: int,
    last: int,
) -> tuple[Float[Tensor, "B V T"], Float[Tensor, "B V T C"]]:
    B, T, _ = embedded.shape
    scores = embedded.new_zeros(last - first, T, B)
    values = embedded.new_zeros(last - first, T, B, len(reader.weight) - reader.split)

    def keep(token: int, variant: int, read: Float[Tensor, "V B R"]) -> None:
        read = read + reader.bias
        here = slice(variant - first, variant - first + len(read))
        scores[here, token] = model.attention.score(read[..., : reader.split])
        values[here, token] = read[..., reader.split :]

    run_variants(model.encoder, embedded, present, reader.weight, first=first, last=last, read=keep)
    return scores.permute(2, 0, 1), values.permute(2, 0, 1, 3)


def recompute_windows(
    encoder: CNN,
    reader: StateProjection,
    embedded: Float[Tensor, "B T E"],
    variants: Float[Tensor, "B V T R"],
    first: int,
) -> Float[Tensor, "B V T R"]:
    """Recompute the states whose window reached over the deleted token, and put them in place."""
    reach = max(encoder.kernels) // 2
    B, V, _, R = variants.shape
    around = torch.cat([torch.arange(-2 * reach, 0), torch.arange(1, 2 * reach + 1)])
    near = around[reach:-reach]  # offsets of the states that change
    deleted = torch.arange(first, first + V)
    padded = nn.functional.pad(embedded, (0, 0, 2 * reach, 2 * reach))
    windows = padded[:, deleted[:, None] + around + 2 * reach]
    flat = windows.flatten(0, 1)
    states = encoder(flat, flat.new_ones(flat.shape[:2], dtype=torch.bool))[:, reach:-reach]
    changed = nn.functional.linear(states, reader.weight, reader.bias).view(B, V, len(near), R)
    roomy = nn.functional.pad(variants, (0, 0, reach, reach))  # windows may hang over the edges
    index = (deleted[:, None] + near + reach)[None, :, :, None].expand(B, V, len(near), R)
    return roomy.scatter(2, index, changed)[:, :, reach:-reach]
