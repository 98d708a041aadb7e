"""Tiny random transformers models of many families, tiny tokenizers, and a witness of their heads.

Weights are large, so that attention matters: what is wrong with it shows in the output.
"""

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
from torch import Tensor, nn
from transformers.modeling_outputs import SequenceClassifierOutput

transformers.logging.set_verbosity_error()  # it logs, on stderr, what tiny configs lack

V, H = 99, 4  # size of the vocabulary, number of heads
PAD, CLS, SEP, UNK = range(4)
WORDS = "a film that is so fine , and in places very dull not good bad . it was the best of all"


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


def words(ends: str = "both", *, types: bool = False, **more: Any) -> Any:
    """A tokenizer of whole words; `ends` says which special tokens stand around a text."""
    known = dict.fromkeys(["[PAD]", "[CLS]", "[SEP]", "[UNK]", *WORDS.split()])
    known |= dict.fromkeys(f"w{number}" for number in range(len(known), V))
    made = Tokenizer(models.WordLevel({w: i for i, w in enumerate(known)}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    return fast(made, ends, types=types, **more)


def wordpiece(ends: str = "both", **more: Any) -> Any:
    """A tokenizer that knows few words and spells the others from pieces, as BERT's does."""
    letters = [chr(code) for code in range(33, 127)]
    whole = ["un", "film", "was", "is", "n't", "good", "great", "the"]
    rest = [f"##{piece}" for piece in ("believ", "able", "ing", "ly", *letters)]
    known = dict.fromkeys(["[PAD]", "[CLS]", "[SEP]", "[UNK]", *whole, *letters, *rest])
    made = Tokenizer(models.WordPiece({w: i for i, w in enumerate(known)}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return fast(made, ends, **more)


def byte_level(*, trim: bool, **more: Any) -> Any:
    """A tokenizer of bytes with a few merges, spaces part of the pieces, as GPT-2's is."""
    merges = [("Ġ", "f"), ("i", "l"), ("Ġf", "il"), ("Ġfil", "m"), ("o", "o"), ("Ġ", "g")]
    known = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    known += ["".join(pair) for pair in merges]
    made = Tokenizer(models.BPE({w: i for i, w in enumerate(known)}, merges))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.post_processor = processors.ByteLevel(trim_offsets=trim)
    return fast(made, "kept", **more)


def fast(made: Tokenizer, ends: str, *, types: bool = False, longest: int = 60) -> Any:
    """The tokenizer as transformers has it, special tokens put where the family wants them."""
    special = [("[CLS]", CLS), ("[SEP]", SEP)]
    templates = {
        "both": ("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1"),
        "after": ("$A [SEP] [CLS]:2", "$A [SEP] $B:1 [SEP]:1 [CLS]:2"),
    }
    if ends in templates:
        single, pair = templates[ends]
        made.post_processor = processors.TemplateProcessing(
            single=single, pair=pair, special_tokens=special
        )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made,
        **{"pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]", "unk_token": "[UNK]"},
        model_max_length=longest,
        model_input_names=["input_ids", *["token_type_ids"] * types, "attention_mask"],
    )


@cache
def model(name: str) -> Any:
    """The family's model, shared by all tests: they must leave it as it is."""
    return build(name)


def tokenizer(name: str) -> Any:
    """The tokenizer of whole words as the family has it."""
    return words(FAMILIES[name].ends, types=FAMILIES[name].types)


VALUES = re.compile(
    r"tt(n|ention)(\.self|\.attn|\.attention)?"
    r"\.(value|in_proj|value_proj|v_lin|v_proj|c_attn|Wqkv|query_key_value|v)$"
)
OUTPUTS = re.compile(
    r"tt(n|ention)(\.output|\.attn|\.attention)?\.(dense|out_lin|out_proj|o_proj|c_proj|Wo|o)$"
)


@contextmanager
def witnessed(model: nn.Module, name: str) -> Iterator[list[tuple[Tensor, Tensor]]]:
    """Every attention's values (B H K D) and what its heads give out (B H Q D), in order.

    Seen where no seam is: at the projections before and after, or, in XLNet, around the method
    between them.
    """
    seen: list[tuple[Tensor, Tensor]] = []
    values: list[Tensor] = []

    def valued(parent: nn.Module) -> Callable[..., None]:
        def hook(_: object, __: object, raw: Tensor) -> None:
            found = FAMILIES[name].values(raw, parent).transpose(1, 2)
            values.append(found.repeat_interleave(H // found.shape[1], dim=1).detach().clone())

        return hook

    def given(_: object, args: tuple[Tensor, ...]) -> None:
        heads = args[0].unflatten(-1, (H, -1)).transpose(1, 2)
        seen.append((values.pop(), heads.detach().clone()))

    handles = []
    for path, module in model.named_modules():
        if name == "xlnet" and path.endswith("rel_attn"):
            module.rel_attn_core = _witness_of_xlnet(module, seen)
        elif VALUES.search(path):
            parent = model.get_submodule(path.rpartition(".")[0])
            handles.append(module.register_forward_hook(valued(parent)))
        elif OUTPUTS.search(path):
            handles.append(module.register_forward_pre_hook(given))
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()
        for module in model.modules():
            module.__dict__.pop("rel_attn_core", None)


def _witness_of_xlnet(module: Any, seen: list[tuple[Tensor, Tensor]]) -> Callable[..., Tensor]:
    own = module.rel_attn_core

    def core(query: Tensor, key: Tensor, value: Tensor, *rest: Any, **more: Any) -> Tensor:
        mixed: Tensor = own(query, key, value, *rest, **more)
        seen.append((value.permute(1, 2, 0, 3).detach(), mixed.permute(1, 2, 0, 3).detach()))
        return mixed

    return core


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
