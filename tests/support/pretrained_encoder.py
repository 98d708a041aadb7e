"""A tiny pretrained encoder in a folder, as fine-tuning takes it."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers

import heedful
from heedful.core.rng import generator
from support import tiny_tokenizers

WORDS = [*(f"f{number}" for number in range(20)), "dull", "fine"]


def write_encoder(
    folder: Path, words: Sequence[str], *, kind: str = "BertModel", width: int = 16, **config: Any
) -> Path:
    """A random BERT that knows these words; its weights are small, as those of a trained one."""
    known = dict.fromkeys(["[PAD]", "[CLS]", "[SEP]", "[UNK]", *words])
    made = Tokenizer(models.WordLevel({w: i for i, w in enumerate(known)}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    settings = transformers.BertConfig(
        vocab_size=len(known),
        hidden_size=width,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=2 * width,
        max_position_embeddings=64,
        pad_token_id=tiny_tokenizers.PAD,
        **config,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = getattr(transformers, kind)(settings)
    transformers.utils.logging.disable_progress_bar()
    model.save_pretrained(folder)
    tiny_tokenizers.fast(made, "both", types=True).save_pretrained(folder)
    return folder


def rows(count: int = 40, seed: int = 0) -> list[dict[str, str]]:
    """Texts of five to nine fillers, one of them replaced by a cue that tells the label."""
    draw = generator(seed, "rows of a test")
    made = []
    for number in range(count):
        words = [f"f{one}" for one in draw.integers(0, 20, draw.integers(5, 10))]
        words[int(draw.integers(len(words)))] = ("dull", "fine")[number % 2]
        made.append({"text": " ".join(words), "label": ("bad", "so good")[number % 2]})
    return made


TRAIN, DEV = heedful.read(rows(), split="train"), heedful.read(rows(20, seed=1))


def weights(folder: Path) -> bytes:
    """The weights of a model folder, as they lie on the disk."""
    return (folder / "model.safetensors").read_bytes()


def told(folder: Path) -> dict[str, Any]:
    """How a model folder says it came about."""
    found: dict[str, Any] = json.loads((folder / "training.json").read_text())
    return found
