"""A tiny masked language model in a folder, as transformers keeps one."""

import torch
import transformers

from support import tiny_tokenizers
from support.tiny_models import LARGE


def filler(folder, *, seed=0, longest=60, sure=None):
    """A folder with a random model; `sure` is a word that it then puts into every gap."""
    tokenizer = tiny_tokenizers.wordpiece(types=True, longest=longest)
    tokenizer.add_special_tokens({"mask_token": "[MASK]"})
    torch.manual_seed(seed)
    config = transformers.BertConfig(**LARGE | {"vocab_size": len(tokenizer)})
    model = transformers.BertForMaskedLM(config).eval()
    with torch.no_grad():
        for one in model.parameters():
            one.mul_(3.0)
        if sure is not None:
            (number,) = tokenizer(f" {sure}", add_special_tokens=False)["input_ids"]
            model.cls.predictions.bias[number] += 1000.0
            model.cls.predictions.decoder.bias.copy_(model.cls.predictions.bias)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)
