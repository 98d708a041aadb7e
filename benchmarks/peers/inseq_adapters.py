"""inseq explains language models: where a subject is one, its answer is attributed to the text."""

from functools import lru_cache

import inseq
import torch

from benchmarks.peers.versions_of_text import TextVersions
from heedful.core.errors import NotApplicable


def integrated_gradients(subject, example):
    """Integrated gradients of the answer's probability, the L2 norm over each vector."""
    return _attribute(subject, example, "integrated_gradients")


def saliency(subject, example):
    """Gradients of the answer's probability, the L2 norm over each vector."""
    return _attribute(subject, example, "saliency")


def _attribute(subject, example, method):
    model = getattr(subject, "model", None)
    answers = getattr(subject, "answers", None)
    if model is None or answers is None or model.config.is_encoder_decoder:
        raise NotApplicable(
            "inseq explains language models that generate; this subject is a classifier."
        )
    text = TextVersions(subject, example)
    tokenizer = subject.subword_tokenizer.tokenizer
    whole = f"{example.text} {tokenizer.decode([answers[text.target]]).strip()}"
    found = _loaded(model, tokenizer, method).attribute(
        example.text, whole, show_progress=False, pretty_progress=False
    )
    given = found.aggregate().sequence_attributions[0].target_attributions
    tokens = len(text.encoded.ids)
    return text.by_word(torch.as_tensor(given)[:tokens, -1].double())


@lru_cache(maxsize=1)
def _loaded(model, tokenizer, method):
    return inseq.load_model(model, method, tokenizer=tokenizer)


ADAPTERS = {
    "inseq integrated_gradients": integrated_gradients,
    "inseq saliency": saliency,
}
