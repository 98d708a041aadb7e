"""A model that transformers never heard of, with attention as users write it."""

from collections.abc import Sequence
from typing import Any

import torch
import transformers
from torch import nn
from transformers.modeling_outputs import SequenceClassifierOutput

from support.tiny_models import enlarge
from support.tiny_tokenizers import PAD, V


class HandMadeConfig(transformers.PreTrainedConfig):
    model_type = "hand-made"

    def __init__(self, kinds=("fused",), **more):
        self.kinds = list(kinds)
        super().__init__(**more)


class HandMadeAttention(nn.Module):
    """Attention as users write it, in one of several ways."""

    def __init__(self, kind):
        super().__init__()
        self.kind, self.project = kind, nn.Linear(8, 24)

    def forward(self, states, mask):
        split = self.project(states).unflatten(-1, (2, 12)).transpose(1, 2)
        query, key, value = split.chunk(3, dim=-1)
        bias = torch.where(mask[:, None, None].bool(), 0.0, -1e9).to(query)
        scores = query @ key.transpose(-1, -2) / 2 + bias
        if self.kind == "softmax":
            mixed = scores.softmax(-1) @ value
        elif self.kind == "folded":  # texts and heads on one axis
            mixed = (scores.flatten(0, 1).softmax(-1) @ value.flatten(0, 1)).view(value.shape)
        elif self.kind == "exponent":
            mixed = (scores.exp() / scores.exp().sum(-1, keepdim=True)) @ value
        else:
            mixed = nn.functional.scaled_dot_product_attention(query, key, value, bias)
        if self.kind == "decoy":
            scores.softmax(-1)  # what it shows is not what it uses
        return states + mixed.transpose(1, 2).flatten(2)


class HandMadeForSequenceClassification(transformers.PreTrainedModel):
    config_class = HandMadeConfig
    _supports_sdpa = True

    def __init__(self, config):
        super().__init__(config)
        self.embedding = nn.Embedding(V, 8)
        self.layers = nn.ModuleList(HandMadeAttention(kind) for kind in config.kinds)
        self.classifier = nn.Linear(8, config.num_labels)
        self.post_init()

    def get_input_embeddings(self):
        return self.embedding

    def forward(self, input_ids, attention_mask, **_):
        states = self.embedding(input_ids)
        for layer in self.layers:
            states = layer(states, attention_mask)
        return SequenceClassifierOutput(logits=self.classifier(states[:, 0]))


def hand_made(kinds: Sequence[str]) -> Any:
    """A model that transformers never heard of, with an attention of each kind."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        made = HandMadeForSequenceClassification(HandMadeConfig(kinds, pad_token_id=PAD))
        enlarge(made)
    return made.double().eval()
