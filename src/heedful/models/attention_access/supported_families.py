"""Transformer families that are tested, and the access path of each.

Other families are not refused: access is checked for every model at load time. The table lists
families for which that check is known to succeed; `tests/parity/test_seam.py` tests it.
"""

from typing import Literal

INTERFACE_FAMILIES: tuple[str, ...] = (
    *("bert", "roberta", "xlm-roberta", "distilbert", "albert", "electra", "modernbert"),
    *("gpt2", "gpt_neox", "opt", "llama", "mistral", "qwen2", "qwen3", "gemma2", "gpt_oss"),
    *("t5", "bart", "marian"),
)
TAP_FAMILIES: tuple[str, ...] = (
    *("deberta", "deberta-v2", "mpnet", "xlnet", "gpt_neo", "gptj", "bloom", "falcon"),
)
REFUSED_FAMILIES: dict[str, str] = {
    "longformer": "it attends in windows, not from token to token",
    "funnel": "it pools its tokens between layers",
}

PATH_BY_FAMILY: dict[str, Literal["interface", "tap"]] = {
    **dict.fromkeys(INTERFACE_FAMILIES, "interface"),
    **dict.fromkeys(TAP_FAMILIES, "tap"),
}
PATH_DESCRIPTIONS = {
    "interface": "transformers; weights and values, by its attention interface",
    "tap": "transformers; weights, by a tap on its softmax",
}
