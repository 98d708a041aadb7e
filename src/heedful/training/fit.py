"""Train an attention classifier as Jain & Wallace (2019) did, but chosen on dev data and seeded."""

import time
from collections.abc import Sequence
from dataclasses import asdict
from hashlib import blake2b
from pathlib import Path
from typing import Any

import torch

from heedful.core.batch import Encoded
from heedful.core.errors import DataError
from heedful.core.timing import Progress, no_progress
from heedful.core.values import Example
from heedful.data.dataset import Dataset
from heedful.data.read import read
from heedful.models.recurrent.classifier import AttentionClassifier, Shape
from heedful.models.recurrent.subject import RecurrentSubject
from heedful.models.recurrent.vocabulary import Vocabulary, WordTokenizer
from heedful.models.recurrent.word_vectors import load_word_vectors
from heedful.training.loop.checkpoint import TrainingIdentity, TrainingState, delete_checkpoint
from heedful.training.loop.epochs import CheckpointFolder, EarlyStopping
from heedful.training.loop.recurrent_trainer import RecurrentTrainer
from heedful.training.recipe import Recipe
from heedful.training.variants.objectives import TaskObjective


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
    second is the query of an attention over the first. The test set is never seen. With a folder
    `kept` each epoch is safe there once it is over: the same call again goes on from it.
    """
    started = time.process_time()
    dev = align_dev_labels(train, dev)
    texts, held = split_dev(train, dev)
    subject, found = _init_from_texts(texts, train.labels, recipe)
    known, judged = _encode(subject, texts, recipe), _encode(subject, held, recipe)
    require_every_class(known, train.labels)
    place = (
        None
        if kept is None
        else CheckpointFolder(Path(kept), _identity(subject, train, dev, recipe))
    )
    state = _train(subject, known, judged, place, progress, recipe=recipe)
    if kept is not None:
        delete_checkpoint(Path(kept))
    subject.history.update(
        recipe=asdict(recipe),
        data=describe_data(train, len(known)),
        dev={"texts": len(judged), "source": "dev split" if dev else "a tenth of train, by hash"},
        left_out={"train": len(texts) - len(known), "dev": len(held) - len(judged)},
        vectors_found=found,
        dev_scores=state.scores,
        best_epoch=state.best_epoch + 1,
        cpu_seconds=round(state.seconds if kept else time.process_time() - started, 1),
        torch=torch.__version__,
    )
    return subject


def describe_data(train: Dataset, texts: int) -> dict[str, Any]:
    """What a model's history keeps of its training data."""
    description = {"name": train.name, "sha256": train.sha256, "texts": texts}
    if train.cleaning:
        description |= {"cleaning": train.cleaning}
    return description | ({"rows_left_out": str(train.left_out)} if train.left_out.total else {})


def _identity(
    subject: RecurrentSubject, train: Dataset, dev: Dataset | None, recipe: Recipe
) -> TrainingIdentity:
    """All that the weights depend on; a checkpoint of another training must not be taken up."""
    return {
        **asdict(recipe),
        "train": train.origin(),
        "dev": None if dev is None else dev.origin(),
        "model": subject.fingerprint(),
        "torch": torch.__version__,
    }


def align_dev_labels(train: Dataset, dev: Dataset | None) -> Dataset | None:
    """The dev data with the class names of the training data, of which there are two or more."""
    if len(train.labels) < 2:
        raise DataError(
            f"The training data has one class only, {train.labels[0]!r}; two are needed."
        )
    return None if dev is None else read(dev, labels=train.labels)


def split_dev(train: Dataset, dev: Dataset | None) -> tuple[list[Example], list[Example]]:
    """Texts to train on and texts to choose by: the dev data, or a tenth set aside by hash."""
    texts = list(train)
    if dev is not None:
        return texts, list(dev)
    held = [_in_dev_tenth(example.text) for example in texts]
    if not any(held) or all(held):
        raise DataError(f"{train.name} has {len(texts)} texts: too few to set some aside as dev.")
    return (
        [example for example, out in zip(texts, held, strict=True) if not out],
        [example for example, out in zip(texts, held, strict=True) if out],
    )


def _in_dev_tenth(text: str) -> bool:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()[0] % 10 == 0


def _init_from_texts(
    texts: Sequence[Example], labels: tuple[str, ...], recipe: Recipe
) -> tuple[RecurrentSubject, int | None]:
    """A fresh network with its vocabulary, and how many of its words came with a vector."""
    query = _with_query(texts)
    words = (_all_words(one, recipe.tokenizer) for one in texts)
    return init_recurrent_subject(
        Vocabulary.from_texts(words, min_df=recipe.min_df), labels, recipe, query=query
    )


def _with_query(texts: Sequence[Example]) -> bool:
    """Whether the texts come with a second one; all of them must, or none."""
    paired = sum(one.pair is not None for one in texts)
    if 0 < paired < len(texts):
        raise DataError(
            f"{paired} of {len(texts)} rows have two texts and the others one; all or none must."
        )
    return paired > 0


def _all_words(one: Example, split: WordTokenizer) -> list[str]:
    """The words of a row, its question's too."""
    words = (one.tokens or split(one.text)) + (split(one.pair) if one.pair is not None else ())
    return [split.normalise(word) for word in words]


def init_recurrent_subject(
    vocabulary: Vocabulary, labels: tuple[str, ...], recipe: Recipe, *, query: bool = False
) -> tuple[RecurrentSubject, int | None]:
    """A fresh network for known words, and how many of them came with a vector."""
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
            network.embedding.reset_parameters()  # torch's own way, padding at zero
    if table is not None:
        network.embedding.weight.data.copy_(table)
    return RecurrentSubject(network, vocabulary, recipe.tokenizer, labels, recipe.max_words), found


def _encode(subject: RecurrentSubject, texts: Sequence[Example], recipe: Recipe) -> list[Encoded]:
    encoded = (subject.encode(example) for example in texts)
    return [one for one in encoded if one.explained_tokens >= recipe.min_words]


def require_every_class(known: Sequence[Encoded], labels: tuple[str, ...]) -> None:
    """Refuse to train where a class has no text."""
    seen = {one.label for one in known}
    if missing := [name for number, name in enumerate(labels) if number not in seen]:
        raise DataError(f"No training text of {_quote_names(missing)} is left; cannot train.")


def _quote_names(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names)


def _train(
    subject: RecurrentSubject,
    known: Sequence[Encoded],
    judged: Sequence[Encoded],
    kept: CheckpointFolder | None,
    progress: Progress,
    *,
    recipe: Recipe,
) -> TrainingState:
    """Run all epochs and leave the network at its best one."""
    course = RecurrentTrainer(
        subject,
        recipe,
        known,
        judged,
        TaskObjective.of(known, subject),
        TaskObjective.of(judged, subject),
    )
    stopping = EarlyStopping(recipe.epochs, recipe.patience, ceiling=1.0)
    return course.train(stopping, kept=kept, progress=progress)
