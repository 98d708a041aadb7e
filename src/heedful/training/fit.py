"""Train a classifier on data, seeded and selected on dev data: `fit` and `finetune`.

`fit` trains an attention classifier as in Jain & Wallace (2019), `finetune` a pretrained
transformer.
"""

import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from heedful.core.batch import Encoded
from heedful.core.errors import DataError
from heedful.core.files.folder_lock import lock_folder
from heedful.core.timing import Progress, no_progress
from heedful.core.values import Example
from heedful.data.dataset import Dataset
from heedful.data.read import read
from heedful.models.protocols import Subject
from heedful.models.recurrent.classifier import AttentionClassifier, Shape
from heedful.models.recurrent.subject import RecurrentSubject
from heedful.models.recurrent.vocabulary import Vocabulary, WordTokenizer
from heedful.models.recurrent.word_vectors import load_word_vectors
from heedful.models.transformer.new_classifier import new_classifier, save_classifier
from heedful.models.transformer.subject import TransformerSubject
from heedful.results.outputs import output_path
from heedful.training.loop.epochs import Checkpoint, EarlyStopping, TrainingIdentity
from heedful.training.loop.predictions import require_dev
from heedful.training.loop.trainables import RecurrentTrainable, TransformerTrainable
from heedful.training.loop.trainer import Trainable, Trainer
from heedful.training.recipe import FineTuning, Recipe

HISTORY_FILE = "training.json"
IDENTITY_PACKAGES = ("heedful", "torch", "transformers", "tokenizers")


def fit(
    train: Dataset,
    dev: Dataset | None,
    recipe: Recipe,
    *,
    kept: str | Path | None = None,
    progress: Progress = no_progress,
) -> RecurrentSubject:
    """Train and return the subject of the epoch with the best dev score (float32, frozen).

    Without dev data a tenth of the training texts is set aside, by a hash of the text. The score is
    ROC-AUC for two classes and accuracy for more. Where texts come in pairs, or with questions, the
    second is the query of an attention over the first. The test set is never used. With a folder
    `kept` a checkpoint is written there after each epoch, and the same call resumes from it;
    another process that uses the folder is refused.
    """
    if kept is None:
        return _fit(train, dev, recipe, None, progress)
    with lock_folder(place := output_path(kept), "kept"):
        return _fit(train, dev, recipe, place, progress)


def _fit(
    train: Dataset, dev: Dataset | None, recipe: Recipe, kept: Path | None, progress: Progress
) -> RecurrentSubject:
    started = time.process_time()
    dev = _align_dev_labels(train, dev)
    examples = split_dev(train, dev)
    subject, found = _init_from_texts(examples[0], train.labels, recipe)
    texts = [encode_texts(subject, some, min_words=recipe.min_words) for some in examples]
    checkpoint = None
    if kept is not None:
        details = {"model": subject.fingerprint(), "torch": torch.__version__}
        checkpoint = Checkpoint(kept, training_identity(recipe, train, dev, **details))
    stopping = EarlyStopping(recipe.epochs, recipe.patience, ceiling=1.0)
    trainer = _build_trainer(RecurrentTrainable(subject, recipe), texts, stopping)
    state = trainer.train(checkpoint=checkpoint, progress=progress)
    if checkpoint is not None:
        checkpoint.delete()
    left_out = (len(all_) - len(some) for all_, some in zip(examples, texts, strict=True))
    subject.history.update(
        recipe=asdict(recipe),
        data=describe_data(train, len(texts[0])),
        dev=_describe_dev(train, dev, len(texts[1])),
        left_out=dict(zip(("train", "dev"), left_out, strict=True)),
        vectors_found=found,
        dev_scores=state.scores,
        best_epoch=state.best_epoch + 1,
        cpu_seconds=round(state.seconds if kept else time.process_time() - started, 1),
        torch=torch.__version__,
    )
    return subject


def finetune(
    train: Dataset,
    dev: Dataset | None,
    recipe: FineTuning,
    *,
    out: str | Path,
    progress: Progress = no_progress,
) -> TransformerSubject:
    """Fine-tune, write the model folder `out`, and return the subject of the best epoch (float32).

    Dev data and score are those of `fit`. A checkpoint is written to `out` after each epoch; the
    same call resumes from it to the same weights. Another process that uses `out` is refused.
    """
    with lock_folder(place := output_path(out)):
        return _finetune(train, dev, recipe, place, progress)


def _finetune(
    train: Dataset, dev: Dataset | None, recipe: FineTuning, out: Path, progress: Progress
) -> TransformerSubject:
    started = time.process_time()
    dev = _align_dev_labels(train, dev)
    examples = split_dev(train, dev)
    subject, new_weights = new_classifier(
        recipe.encoder, train.labels, seed=recipe.seed, max_tokens=recipe.max_tokens
    )
    texts = [encode_texts(subject, some, min_words=0) for some in examples]
    trainable = TransformerTrainable(subject, recipe)
    trainer = _build_trainer(trainable, texts, EarlyStopping(recipe.epochs))
    versions = {name: version(name) for name in IDENTITY_PACKAGES}
    identity = training_identity(
        recipe, train, dev, labels=list(train.labels), model=subject.fingerprint(), **versions
    )
    checkpoint = Checkpoint(out, identity)
    seconds = time.process_time() - started
    state = trainer.train(checkpoint=checkpoint, progress=progress, seconds=seconds)
    truncated = (sum(one.truncated for one in some) for some in texts)
    history = {
        "recipe": asdict(recipe),
        "data": describe_data(train, len(texts[0])),
        "dev": _describe_dev(train, dev, len(texts[1])),
        "labels": list(train.labels),
        "truncated": dict(zip(("train", "dev"), truncated, strict=True)),
        "new_weights": list(new_weights),
        "versions": versions,
        **state.summary(),
    }
    save_classifier(subject, out, extra_files={HISTORY_FILE: json.dumps(history, indent=1)})
    checkpoint.delete()
    return subject


def _build_trainer(
    trainable: Trainable, texts: Sequence[Sequence[Encoded]], stopping: EarlyStopping
) -> Trainer:
    """A trainer on the labels; errors in the data are raised here, before the first step."""
    labels = trainable.subject.labels
    require_every_class(texts[0], labels)
    require_dev(texts[1], len(labels))
    return Trainer(trainable, trainable.task(texts[0]), trainable.task(texts[1]), stopping)


def describe_data(train: Dataset, texts: int) -> dict[str, Any]:
    """The training data as recorded in a model's history."""
    description = {"name": train.name, "sha256": train.sha256, "texts": texts}
    if train.cleaning:
        description |= {"cleaning": train.cleaning}
    return description | ({"rows_left_out": str(train.left_out)} if train.left_out.total else {})


def _describe_dev(train: Dataset, dev: Dataset | None, texts: int) -> dict[str, Any]:
    """The dev data as recorded in a model's history."""
    if dev is None:
        return {"texts": texts, "source": "a tenth of train, by hash"}
    same = {"note": "the same rows as train"} if dev.sha256 == train.sha256 else {}
    return {"texts": texts, "source": "dev split", **same}


def training_identity(
    recipe: Any, train: Dataset, dev: Dataset | None, **details: Any
) -> TrainingIdentity:
    """Everything that the weights depend on; training resumes only from an equal identity."""
    return {
        **asdict(recipe),
        "train": train.origin(),
        "dev": None if dev is None else dev.origin(),
        **details,
    }


def _align_dev_labels(train: Dataset, dev: Dataset | None) -> Dataset | None:
    """The dev data with the class names of the training data, which must have two or more."""
    if len(train.labels) < 2:
        raise DataError(
            f"The training data has one class only, {train.labels[0]!r}; two are needed."
        )
    return None if dev is None else read(dev, labels=train.labels)


def split_dev(train: Dataset, dev: Dataset | None) -> tuple[list[Example], list[Example]]:
    """Training texts and dev texts: the dev data, or a tenth of the training texts by hash."""
    texts = list(train)
    if dev is not None:
        return texts, list(dev)
    keys = (example.text.encode("utf-8", "surrogatepass") for example in texts)
    held_out = [blake2b(key, digest_size=8).digest()[0] % 10 == 0 for key in keys]
    if not any(held_out) or all(held_out):
        raise DataError(f"{train.name} has {len(texts)} texts: too few to set some aside as dev.")
    return (
        [example for example, out in zip(texts, held_out, strict=True) if not out],
        [example for example, out in zip(texts, held_out, strict=True) if out],
    )


def _init_from_texts(
    texts: Sequence[Example], labels: tuple[str, ...], recipe: Recipe
) -> tuple[RecurrentSubject, int | None]:
    """A new network with its vocabulary, and the number of words that have a pretrained vector."""
    paired = sum(one.pair is not None for one in texts)
    if 0 < paired < len(texts):
        raise DataError(
            f"{paired} of {len(texts)} rows have two texts and the others one; all or none must."
        )
    words = (_all_words(one, recipe.tokenizer) for one in texts)
    vocabulary = Vocabulary.from_texts(words, min_df=recipe.min_df)
    return init_recurrent_subject(vocabulary, labels, recipe, query=paired > 0)


def _all_words(one: Example, split: WordTokenizer) -> list[str]:
    """The words of a row, those of its question included."""
    words = (one.tokens or split(one.text)) + (split(one.pair) if one.pair is not None else ())
    return [split.normalise(word) for word in words]


def init_recurrent_subject(
    vocabulary: Vocabulary, labels: tuple[str, ...], recipe: Recipe, *, query: bool = False
) -> tuple[RecurrentSubject, int | None]:
    """A new network for a vocabulary, and the number of words that have a pretrained vector."""
    table, found = (
        load_word_vectors(recipe.embeddings, vocabulary) if recipe.embeddings else (None, None)
    )
    width = recipe.embedding if table is None else table.shape[1]
    sizes = width, recipe.hidden, query
    shape = Shape(len(vocabulary), len(labels), recipe.encoder, recipe.attention, *sizes)
    with torch.random.fork_rng(devices=[]):  # torch initialises layers from its global stream
        torch.manual_seed(recipe.seed)
        network = AttentionClassifier(shape)
        if recipe.drawn == "normal":
            network.embedding.reset_parameters()  # torch's default, zero for padding
    if table is not None:
        network.embedding.weight.data.copy_(table)
    return RecurrentSubject(network, vocabulary, recipe.tokenizer, labels, recipe.max_words), found


def encode_texts(subject: Subject, texts: Iterable[Example], *, min_words: int) -> list[Encoded]:
    """The texts with at least so many words to explain."""
    encoded = (subject.encode(one) for one in texts)
    return [one for one in encoded if one.explained_tokens >= min_words]


def require_every_class(encoded: Sequence[Encoded], labels: tuple[str, ...]) -> None:
    """Raise DataError if a class has no training text."""
    present = {one.label for one in encoded}
    if missing := [repr(name) for number, name in enumerate(labels) if number not in present]:
        raise DataError(f"No training text of {', '.join(missing)} is left; cannot train.")
