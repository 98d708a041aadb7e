"""A tiny encoder, and what an undisturbed fine-tuning makes of it."""

import pytest


@pytest.fixture(scope="session")
def encoder(tmp_path_factory):
    from support.pretrained_encoder import WORDS, write_encoder

    return write_encoder(tmp_path_factory.mktemp("encoder") / "tiny", WORDS)


@pytest.fixture(scope="session")
def recipe(encoder):
    """Three epochs of five steps."""
    from heedful.training.recipe import FineTuning

    return FineTuning(str(encoder), epochs=3, batch=8, rate=1e-3)


@pytest.fixture(scope="session")
def whole(recipe, tmp_path_factory):
    """The folder of an undisturbed run."""
    from heedful.training.fit import finetune
    from support.pretrained_encoder import DEV, TRAIN

    folder = tmp_path_factory.mktemp("whole") / "model"
    finetune(TRAIN, DEV, recipe, out=folder)
    return folder
