"""A small base model on a small corpus, and a school for its like."""

from dataclasses import replace
from functools import cache

import heedful
from heedful.checks.retraining.hidden_word_marks import mark_hidden_words
from heedful.data.read import read
from heedful.training.fit import fit
from heedful.training.recipe import Recipe
from heedful.training.variants.texts import EncodedTexts
from heedful.training.variants.variant_store import VariantStore

RECIPE = Recipe(hidden=8, embedding=12, epochs=3, batch=16, rate=0.02)


@cache
def data(split, limit, corpus="synthetic:needle"):
    return read(corpus, split=split, limit=limit)


@cache
def base(encoder="bilstm", attention="additive"):
    """Trained for a second; its answers are mostly right."""
    recipe = replace(RECIPE, encoder=encoder, attention=attention)
    return fit(data("train", 160), data("dev", 60), recipe)


def variant_store(folder, subject=None):
    """A school in a folder."""
    subject = subject or base()
    train, dev = (
        EncodedTexts(subject, list(data(*one)), 1, mark_hidden_words)
        for one in (("train", 160), ("dev", 60))
    )
    return VariantStore(folder, subject, train, dev, {"model": subject.fingerprint()})


def model(folder):
    """The base model in a folder of its own."""
    from heedful.models.recurrent.model_folder import save_model

    save_model(base(), folder)
    return heedful.load(folder)
