"""Transformer families whose attention was tried, and by which path it is reached.

What is not in this table is not refused: every model is proved when it is loaded. The table says
for which the proof is known to succeed; `tests/parity/test_seam.py` holds it true.
"""

from typing import Literal

INTERFACE: tuple[str, ...] = (
    *("bert", "roberta", "xlm-roberta", "distilbert", "albert", "electra", "modernbert"),
    *("gpt2", "gpt_neox", "opt", "llama", "mistral", "qwen2", "qwen3", "gemma2", "gpt_oss"),
    *("t5", "bart", "marian"),
)
TAP: tuple[str, ...] = (
    *("deberta", "deberta-v2", "mpnet", "xlnet", "gpt_neo", "gptj", "bloom", "falcon"),
)
REFUSED: dict[str, str] = {
    "longformer": "it attends in windows, not from token to token",
    "funnel": "it pools its tokens on the way",
}

PATHS: dict[str, Literal["interface", "tap"]] = {
    **dict.fromkeys(INTERFACE, "interface"),
    **dict.fromkeys(TAP, "tap"),
}
WORDS = {
    "interface": "transformers; weights and values, by its attention interface",
    "tap": "transformers; weights, by a tap on its softmax",
}
