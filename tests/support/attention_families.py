"""What the tests of the seam share: subjects of every family, their inputs, and plain loops."""

from functools import cache

import pytest
import torch

from heedful.core.batch import Batch
from heedful.core.values import Example
from heedful.models.transformer.from_pretrained import from_model
from support import handwritten_model, tiny_models, tiny_tokenizers
from support.tiny_models import FAMILIES, H

TEXTS = (
    "a film that is so fine , and in places so dull .",
    "not bad",
    "it was the best of all",
)
CAUSAL = [name for name, family in FAMILIES.items() if family.causal]
DOUBLE = [name for name, family in FAMILIES.items() if family.dtype == torch.float64]
TAPPED = [name for name, family in FAMILIES.items() if family.path == "tap"]
SHORT = [
    name
    for name, family in FAMILIES.items()
    if family.path == "interface" and not family.seq2seq and name != "albert"
]  # where other rows of the last layer can be decoded by that layer alone
ROUGH = (
    "deberta",
    "llama",
    "mistral",
    "qwen2",
    "qwen3",
    "t5",
)  # norms in float32, whatever the model is in
families = pytest.mark.parametrize("name", FAMILIES)


def made(model, name, **choices):
    """A subject of the model; an encoder–decoder has written two words already."""
    written = {"prefix": "so fine"} if FAMILIES[name].seq2seq else {}
    return from_model(model, tiny_models.tokenizer(name), **written, **choices)


@cache
def subject(name, scope=None):
    return made(tiny_models.model(name), name, scope=scope)


def hand_made(*kinds):
    return from_model(handwritten_model.hand_made(kinds), tiny_tokenizers.words())


def encoded(subject, texts=TEXTS):
    return [subject.encode(Example(index, text, 0)) for index, text in enumerate(texts)]


def batch(subject, texts=TEXTS):
    return subject.batch(encoded(subject, texts))


def draw(shape, like, seed=0):
    made = torch.rand(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return made.to(like)


def inputs(subject, rows):
    """What a user would hand to the model for a padded batch."""
    given = {"input_ids": rows.ids, "attention_mask": rows.present.long()}
    if rows.types is not None:
        given["token_type_ids"] = rows.types
    if subject.prefix:
        given["decoder_input_ids"] = torch.tensor(subject.prefix).expand(len(rows), -1)
    return given


def answers(subject, output, rows):
    """The logits of the classes, or of the next token after each text's last."""
    if output.logits.dim() == 2:
        return output.logits
    if subject.prefix:
        return output.logits[:, -1]
    last = [int(one.nonzero().max()) for one in rows.present]
    return torch.stack([logits[at] for logits, at in zip(output.logits, last, strict=True)])


def untouched(model, subject, rows, **more):
    return answers(subject, model(**inputs(subject, rows), **more), rows)


def alone(subject, ids, types=None):
    """The untouched model's answer to one text without any padding."""
    ids = torch.tensor([ids])
    here = torch.ones_like(ids, dtype=torch.bool)
    types = None if types is None else torch.tensor([types])
    with torch.no_grad():
        return untouched(subject.model, subject, Batch(ids, here, here, (0,), types))[0]


def allowed(name, rows, order):
    """Which keys each query of the attention may see, (B, Q, K), by the family's definition."""
    family, width = FAMILIES[name], rows.ids.shape[1]
    causal, queries, reach, present = family.causal, width, None, rows.present
    if not family.seq2seq:
        reach = family.reach[order]
    elif order >= family.layers:  # the decoder: self, cross, self, cross
        cross = (order - family.layers) % 2
        causal, queries = not cross, 3
        present = present if cross else torch.ones(len(rows), 3, dtype=torch.bool)
    seen = torch.zeros(len(rows), queries, present.shape[1], dtype=torch.bool)
    for b, i, j in torch.cartesian_prod(*map(torch.arange, seen.shape)).tolist():
        near = reach is None or abs(i - j) <= reach
        seen[b, i, j] = present[b, j] and near and (j <= i or not causal)
    return seen


def real_queries(rows, seen):
    """The queries that are tokens of a text or of the decoder; padding may attend as it likes."""
    return rows.present if seen.shape[1] == rows.ids.shape[1] else torch.ones(seen.shape[:2]).bool()


def uniform(name, rows):
    def edit(call):
        seen = allowed(name, rows, call.order)
        even = seen.double() / seen.sum(-1, keepdim=True).clamp(min=1)
        return even[:, None].repeat(1, H, 1, 1).to(call.weights)

    return edit


def last_key(call):
    keys = torch.zeros_like(call.weights)
    keys[..., 0] = 1.0
    return keys


def random_rows(name, subject, rows, forward, draws=(), seed=0):
    """Random distributions over the keys that the rows under audit may see."""
    layer = len(forward.maps) - 1 if subject.scope.layer == "all" else subject.scope.layer
    order = layer if not subject.prefix else FAMILIES[name].layers + 2 * layer + 1
    seen = allowed(name, rows, order)
    where = subject.position(rows)
    if where is None:
        seen = seen & rows.present[:, :, None]
        seen = seen.repeat(1, forward.rows.shape[1] // seen.shape[1], 1)
    else:
        seen = seen[torch.arange(len(rows)), where][:, None]
    made = draw((*draws, *forward.rows.shape), forward.rows, seed) ** 3 * seen
    return made / made.sum(-1, keepdim=True).clamp(min=1e-9)


def by_hand(subject, rows, new):
    """The whole model with the rows put in their places by plain loops."""
    scope, where = subject.scope, subject.position(rows)
    maps = []

    def edit(call):
        if subject.prefix and call.order not in (3, 5):  # two of the encoder, then self, cross
            return None
        maps.append(call)
        layer, changed = len(maps) - 1, call.weights.clone()
        if scope.layer not in ("all", layer):
            return None
        heads = range(H) if scope.head is None else [scope.head]
        queries = range(changed.shape[2]) if where is None else [None]
        at = layer * len(heads) * len(queries) if scope.layer == "all" else 0
        for head in heads:
            for query in queries:
                for b in range(len(rows)):
                    i = int(where[b]) if query is None else query
                    if where is not None or rows.present[b, i]:
                        changed[b, head, i] = new[b, at]
                at += 1
        return changed

    with subject.access.patched(edit):
        return untouched(subject.model, subject, rows)


def scale(logits):
    return torch.arange(1, logits.shape[-1] + 1).to(logits) / logits.shape[-1]
