"""A tiny real language model, stories260K of llama2.c, as a transformers Llama with tokenizer."""

import struct
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer, decoders, models, normalizers, processors
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

FOLDER = Path(__file__).parents[3] / "shared/data/stories260k"


def model():
    """The weights under their transformers names; rotary pairs side by side become halves."""
    raw = (FOLDER / "stories260K.bin").read_bytes()
    width, inner, layers, heads, groups, words, longest = struct.unpack("<7i", raw[:28])
    floats, at = torch.from_numpy(np.frombuffer(raw, dtype="<f4", offset=28).copy()), 0

    def take(*shape):
        nonlocal at
        at += int(np.prod(shape))
        return floats[at - int(np.prod(shape)) : at].reshape(shape)

    narrow = width // heads * groups
    embedding = take(words, width)
    stacked = {
        "input_layernorm": take(layers, width),
        "self_attn.q_proj": _halves(take(layers, width, width), heads),
        "self_attn.k_proj": _halves(take(layers, narrow, width), groups),
        "self_attn.v_proj": take(layers, narrow, width),
        "self_attn.o_proj": take(layers, width, width),
        "post_attention_layernorm": take(layers, width),
        "mlp.gate_proj": take(layers, inner, width),
        "mlp.down_proj": take(layers, width, inner),
        "mlp.up_proj": take(layers, inner, width),
    }
    weights = {"model.embed_tokens.weight": embedding, "lm_head.weight": embedding}
    weights["model.norm.weight"] = take(width)
    for name, all_layers in stacked.items():
        for layer, one in enumerate(all_layers):
            weights[f"model.layers.{layer}.{name}.weight"] = one
    config = LlamaConfig(
        vocab_size=words,
        hidden_size=width,
        intermediate_size=inner,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=groups,
        max_position_embeddings=longest,
        rms_norm_eps=1e-5,
        tie_word_embeddings=True,
        bos_token_id=1,
        eos_token_id=2,
    )
    made = LlamaForCausalLM(config)
    made.load_state_dict(weights)
    return made.eval().requires_grad_(False)


def _halves(stacked, heads):
    layers, rows, columns = stacked.shape
    paired = stacked.reshape(layers, heads, rows // heads // 2, 2, columns)
    return paired.transpose(2, 3).reshape(layers, rows, columns)


def tokenizer():
    """Its vocabulary as byte-pair merges in the order of the scores."""
    raw, at, tokens = (FOLDER / "tok512.bin").read_bytes(), 4, []
    while at < len(raw):
        score, length = struct.unpack("<fi", raw[at : at + 8])
        tokens.append((raw[at + 8 : at + 8 + length].decode("utf-8", "replace"), score))
        at += 8 + length
    names = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    names += [text for text, _ in tokens[len(names) :]]
    vocabulary = {name: number for number, name in enumerate(names)}
    ranked = sorted(tokens[259:], key=lambda one: -one[1])
    merges = [
        (text[:cut], text[cut:])
        for text, _ in ranked
        for cut in range(1, len(text))
        if text[:cut] in vocabulary and text[cut:] in vocabulary
    ]
    made = Tokenizer(models.BPE(vocabulary, merges, byte_fallback=True, unk_token="<unk>"))
    made.normalizer = normalizers.Prepend(" ")
    made.decoder = decoders.Sequence(
        [decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    made.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", 1)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=made, bos_token="<s>", eos_token="</s>", unk_token="<unk>"
    )
