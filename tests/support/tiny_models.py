"""Tiny random transformers models of many families.

Weights are large, so that attention matters: what is wrong with it shows in the output.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
import transformers
from torch import Tensor, nn

from support.tiny_tokenizers import PAD, SEP, V, words

H = 4  # number of heads


@dataclass(frozen=True)
class Family:
    """How to build one, and what must hold of its attention.

    `reach` is how far a query of each layer sees, where its window is bounded; `values` takes the
    heads' values out of what the value projection gives.
    """

    model: str
    config: dict[str, Any]
    path: str = "interface"
    causal: bool = False
    reach: tuple[int | None, ...] = (None, None)
    ends: str = "none"  # special tokens: "both" (BERT), "after" (XLNet), "none"
    types: bool = False
    dtype: torch.dtype = torch.float64
    values: Callable[[Tensor, nn.Module], Tensor] = lambda raw, _: raw.unflatten(-1, (-1, 8))

    @property
    def layers(self) -> int:
        return len(self.reach)

    @property
    def seq2seq(self) -> bool:
        return self.model.endswith(("ForConditionalGeneration", "MTModel"))

    @property
    def classifies(self) -> bool:
        return self.model.endswith("ForSequenceClassification")

    @property
    def close(self) -> dict[str, float]:
        """How near two ways of computing the same in this precision must come."""
        exact = self.dtype == torch.float64
        return {"rtol": 1e-9, "atol": 1e-10} if exact else {"rtol": 1e-4, "atol": 2e-5}


LARGE = {
    "vocab_size": V,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": H,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
    "pad_token_id": PAD,
}
GROUPED = LARGE | {"num_key_value_heads": 2}
HEADED = GROUPED | {"head_dim": 8, "sliding_window": 4}
GPT = {
    **{"vocab_size": V, "n_embd": 32, "n_layer": 2, "n_head": H, "n_positions": 64},
    **{"bos_token_id": SEP, "eos_token_id": SEP},
}
MARIAN = {
    **{"vocab_size": V, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2},
    **{"encoder_attention_heads": H, "decoder_attention_heads": H},
    **{"encoder_ffn_dim": 37, "decoder_ffn_dim": 37, "max_position_embeddings": 64},
    **{"pad_token_id": PAD, "decoder_start_token_id": PAD},
}
DISENTANGLED = LARGE | {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]}
BOTH = {"ends": "both"}
TYPED = BOTH | {"types": True}
CAUSAL = {"causal": True}
LOCAL = CAUSAL | {"reach": (3, None), "dtype": torch.float32}


def third(raw: Tensor, _: nn.Module) -> Tensor:
    """Values where queries, keys and values of all heads lie one after the other."""
    return raw.chunk(3, dim=-1)[2].unflatten(-1, (H, -1))


def third_of_each(raw: Tensor, module: nn.Module) -> Tensor:
    """Values where each head has its query, key and value side by side."""
    values = raw.unflatten(-1, (H, -1)).chunk(3, dim=-1)[2]
    bias = getattr(module, "v_bias", None)  # DeBERTa
    return values if bias is None else values + bias.view(H, -1)


def one_for_all(raw: Tensor, _: nn.Module) -> Tensor:
    """The one value that all heads of Falcon share."""
    return raw.unflatten(-1, (H + 2, -1))[..., -1:, :]


FAMILIES = {
    "bert": Family("BertForSequenceClassification", LARGE, **TYPED),
    "roberta": Family("RobertaForSequenceClassification", LARGE, **BOTH),
    "xlm-roberta": Family("XLMRobertaForSequenceClassification", LARGE, **BOTH),
    "distilbert": Family(
        "DistilBertForSequenceClassification",
        {"vocab_size": V, "dim": 32, "n_layers": 2, "n_heads": H, "hidden_dim": 37},
        **BOTH,
    ),
    "albert": Family(
        "AlbertForSequenceClassification",
        LARGE | {"embedding_size": 16, "num_hidden_layers": 3},
        reach=(None, None, None),
        **TYPED,
    ),
    "electra": Family("ElectraForSequenceClassification", LARGE | {"embedding_size": 32}, **TYPED),
    "modernbert": Family(
        "ModernBertForSequenceClassification",
        LARGE
        | {"bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2}
        | {"local_attention": 4},
        reach=(None, 2),
        values=third,
        **BOTH,
    ),
    "deberta": Family(
        "DebertaForSequenceClassification", DISENTANGLED, "tap", values=third_of_each, **TYPED
    ),
    "deberta-v2": Family("DebertaV2ForSequenceClassification", DISENTANGLED, "tap", **TYPED),
    "mpnet": Family("MPNetForSequenceClassification", LARGE, "tap", **BOTH),
    "xlnet": Family(
        "XLNetForSequenceClassification",
        {"vocab_size": V, "d_model": 32, "n_layer": 2, "n_head": H, "d_inner": 37}
        | {"pad_token_id": PAD},
        "tap",
        ends="after",
        types=True,
    ),
    "gpt2": Family("GPT2LMHeadModel", GPT, values=third, **CAUSAL),
    "gpt2-classifier": Family(
        "GPT2ForSequenceClassification", GPT | {"pad_token_id": PAD}, values=third, **CAUSAL
    ),
    "gpt-neo": Family(
        "GPTNeoForCausalLM",
        {"vocab_size": V, "hidden_size": 32, "num_layers": 2, "num_heads": H, "window_size": 4}
        | {"attention_types": [[["global", "local"], 1]], "max_position_embeddings": 64}
        | {"bos_token_id": SEP, "eos_token_id": SEP},
        "tap",
        reach=(None, 3),
        **CAUSAL,
    ),
    "gpt-neox": Family("GPTNeoXForCausalLM", LARGE, values=third_of_each, **CAUSAL),
    "gpt-j": Family("GPTJForCausalLM", GPT | {"rotary_dim": 4}, "tap", **CAUSAL),
    "opt": Family(
        "OPTForCausalLM",
        {"vocab_size": V, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": H}
        | {"ffn_dim": 37, "max_position_embeddings": 64, "word_embed_proj_dim": 32},
        **CAUSAL,
    ),
    "llama": Family("LlamaForCausalLM", GROUPED, **CAUSAL),
    "mistral": Family(
        "MistralForCausalLM", GROUPED | {"sliding_window": 4}, reach=(3, 3), **CAUSAL
    ),
    "qwen2": Family("Qwen2ForCausalLM", GROUPED, **CAUSAL),
    "qwen3": Family("Qwen3ForCausalLM", GROUPED | {"head_dim": 8}, **CAUSAL),
    "gemma2": Family("Gemma2ForCausalLM", HEADED | {"attn_logit_softcapping": 2.0}, **LOCAL),
    "gpt-oss": Family(
        "GptOssForCausalLM",
        HEADED
        | {"num_local_experts": 2, "num_experts_per_tok": 1}
        | {"rope_parameters": {"rope_type": "default", "rope_theta": 10_000.0}},
        **LOCAL,
    ),
    "bloom": Family(
        "BloomForCausalLM",
        {"vocab_size": V, "hidden_size": 32, "n_layer": 2, "n_head": H},
        "tap",
        values=third_of_each,
        **CAUSAL,
    ),
    "falcon": Family(
        "FalconForCausalLM",
        {"vocab_size": V, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": H}
        | {"alibi": False, "new_decoder_architecture": False, "multi_query": True},
        "tap",
        values=one_for_all,
        **CAUSAL,
    ),
    "t5": Family(
        "T5ForConditionalGeneration",
        {"vocab_size": V, "d_model": 32, "d_kv": 8, "d_ff": 37, "num_layers": 2, "num_heads": H}
        | {"decoder_start_token_id": PAD},
    ),
    "bart": Family("BartForConditionalGeneration", MARIAN | {"decoder_start_token_id": SEP}),
    "marian": Family("MarianMTModel", MARIAN),
}


REFUSED = {
    "Longformer": LARGE | {"attention_window": 8},
    "Funnel": {"vocab_size": V, "d_model": 32, "n_head": H, "block_sizes": [1, 1]},
}


def refused(kind: str) -> Any:
    """A classifier whose attention is no map from all tokens to all tokens."""
    settings = getattr(transformers, f"{kind}Config")(**REFUSED[kind])
    return getattr(transformers, f"{kind}ForSequenceClassification")(settings).eval()


def build(name: str, *, attention: str | None = None, seed: int = 0, **config: Any) -> Any:
    """A random model of the family, in evaluation mode; the same for the same seed."""
    family = FAMILIES[name]
    with warnings.catch_warnings():  # DeBERTa's file asks torch.jit for what it calls deprecated
        warnings.simplefilter("ignore", DeprecationWarning)
        kind = getattr(transformers, family.model)
    settings = kind.config_class(**{**family.config, **config})
    settings._attn_implementation = attention
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = kind(settings).eval().to(family.dtype)
        enlarge(model)
    return model


def enlarge(model: nn.Module) -> None:
    """Weights of a size at which every layer says as much as it is told."""
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() > 1:
                looked_up = "emb" in name or "wte" in name
                weight.normal_(0.0, 1.0 if looked_up else 1.5 * weight.shape[-1] ** -0.5)
            elif name.endswith(("bias", "sinks")):
                weight.normal_(0.0, 0.3)


@cache
def model(name: str) -> Any:
    """The family's model, shared by all tests: they must leave it as it is."""
    return build(name)


def tokenizer(name: str) -> Any:
    """The tokenizer of whole words as the family has it."""
    return words(FAMILIES[name].ends, types=FAMILIES[name].types)
