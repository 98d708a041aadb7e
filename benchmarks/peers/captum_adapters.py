"""captum on the vectors of the words, as its documentation shows."""

import torch
from captum.attr import FeatureAblation, InputXGradient, IntegratedGradients

from benchmarks.peers.versions_of_text import TextVersions
from heedful.models.protocols import HasMaskEmbedding


def integrated_gradients(subject, example):
    """From vectors of zeros, 50 steps, both by default."""
    text = TextVersions(subject, example)
    given = IntegratedGradients(text.of_vectors).attribute(_vectors(text), target=text.target)
    return text.by_word(given[0].sum(-1).detach())


def input_x_gradient(subject, example):
    """The vector of each word times its gradient."""
    text = TextVersions(subject, example)
    vectors = _vectors(text).requires_grad_()
    given = InputXGradient(text.of_vectors).attribute(vectors, target=text.target)
    return text.by_word(given[0].sum(-1).detach())


def feature_ablation(subject, example):
    """One word at a time replaced by the subject's blank, or by zeros where it has none."""
    text = TextVersions(subject, example)
    vectors = _vectors(text)
    blank = torch.zeros_like(vectors)
    if isinstance(subject, HasMaskEmbedding):
        blank[:] = subject.mask_embedding().vector
    word = torch.tensor(text.encoded.word)
    feature = torch.where(word < 0, len(text.encoded.words), word)[None, :, None]
    with torch.no_grad():
        given = FeatureAblation(text.of_vectors).attribute(
            vectors,
            baselines=blank,
            target=text.target,
            feature_mask=feature.expand_as(vectors),
            perturbations_per_eval=32,
        )
    first = torch.tensor([text.encoded.word.index(place) for place in range(len(text.words))])
    return given[0, first, 0].tolist()


def _vectors(text):
    return text.subject.embed(text.batch).detach()


ADAPTERS = {
    "captum integrated_gradients": integrated_gradients,
    "captum input_x_gradient": input_x_gradient,
    "captum feature_ablation": feature_ablation,
}
