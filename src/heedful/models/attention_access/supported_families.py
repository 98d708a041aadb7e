"""Families of transformers that are tested, and names that families give to their parts.

Other families are not refused: access is checked for every model at load time. The tables of
families list those for which that check is known to succeed; `tests/parity/test_seam.py` tests it.
Names here are only hints: what is found by them is checked against the model's own output.
"""

from typing import Literal

_INTERFACE = (
    *("bert", "roberta", "xlm-roberta", "distilbert", "albert", "electra", "modernbert"),
    *("gpt2", "gpt_neox", "opt", "llama", "mistral", "qwen2", "qwen3", "gemma2", "gpt_oss"),
    *("t5", "bart", "marian"),
)
_TAP = ("deberta", "deberta-v2", "mpnet", "xlnet", "gpt_neo", "gptj", "bloom", "falcon")
REFUSED_FAMILIES: dict[str, str] = {
    "longformer": "it attends in windows, not from token to token",
    "funnel": "it pools its tokens between layers",
}

PATH_BY_FAMILY: dict[str, Literal["interface", "tap"]] = {
    **dict.fromkeys(_INTERFACE, "interface"),
    **dict.fromkeys(_TAP, "tap"),
}
PATH_DESCRIPTIONS = {
    "interface": "transformers; weights and values, by its attention interface",
    "tap": "transformers; weights, by a tap on its softmax",
}

Task = Literal["classification", "next token", "next target token"]
TASK_BY_SUFFIX: dict[str, Task] = {
    "ForSequenceClassification": "classification",
    "ForCausalLM": "next token",
    "LMHeadModel": "next token",
    "ForConditionalGeneration": "next target token",
    "MTModel": "next target token",
}
AUTO_CLASSES: dict[Task, str] = {
    "classification": "AutoModelForSequenceClassification",
    "next token": "AutoModelForCausalLM",
    "next target token": "AutoModelForSeq2SeqLM",
}

ATTENTION_CLASS = "ttention"  # part of the class names of attention modules
CROSS_ATTENTIONS = ("encoder_attn", "EncDecAttention", "crossattention", "cross_attn")
ATTENTION_ARGUMENTS = {
    *("dropout", "scaling", "sliding_window", "softcap", "position_bias", "s_aux", "is_causal"),
    *("position_ids", "position_embeddings", "token_type_ids", "past_key_values", "use_cache"),
    *("cache_position", "deterministic", "output_attentions", "output_hidden_states"),
    *("output_router_logits", "return_dict", "num_items_in_batch", "logits_to_keep"),
    *("encoder_hidden_states", "encoder_attention_mask"),
}
"""Arguments of attention functions that the eager implementations handle or may ignore."""
HEAD_COUNTS = ("num_attention_heads", "encoder_attention_heads", "decoder_attention_heads")
NORM_CLASS = "Norm"  # part of the class names of norms
NORM_EPSILONS = ("eps", "variance_epsilon", "epsilon")
ACTIVATION_PACKAGES = ("torch.nn.modules.activation", "transformers.activations")
ACTIVATION_ENDINGS = ("gelu", "relu", "silu", "activation")  # of class names, in lower case


def is_cross_attention(module: str) -> bool:
    """Whether a module name is that of cross-attention from a decoder to its encoder."""
    return any(part in module for part in CROSS_ATTENTIONS)
