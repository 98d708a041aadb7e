"""Train an attention classifier as Jain & Wallace (2019) did, but chosen on dev data and seeded."""

import copy
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import blake2b

import numpy as np
import torch
from torch import Tensor, nn

from heedful.core.errors import ConfigError, DataError
from heedful.core.progress import Progress, silent
from heedful.core.rng import generator
from heedful.core.values import Encoded, Example, collate
from heedful.data.base import Dataset
from heedful.data.resolve import read
from heedful.models.network import AttentionClassifier, Shape
from heedful.models.recurrent import RecurrentSubject
from heedful.models.vectors import initial_vectors
from heedful.models.words import Vocabulary, WordTokenizer
from heedful.training.score import dev_score
from heedful.training.step import Step


@dataclass(frozen=True)
class Recipe:
    """Every choice of a training run; defaults as published: 8 epochs, batches of 32, Adam 1e-3."""

    encoder: str = "bilstm"
    attention: str = "additive"
    embeddings: str | None = None
    embedding: int = 300
    hidden: int = 128
    epochs: int = 8
    batch: int = 32
    rate: float = 1e-3
    decay: float = 1e-5
    seed: int = 0
    min_df: int = 1
    min_words: int = 1
    max_words: int = 1000
    tokenizer: WordTokenizer = field(default_factory=WordTokenizer)

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.batch < 1 or self.min_df < 1 or self.min_words < 1:
            raise ConfigError(f"epochs, batch, min_df and min_words start at 1; got {self}.")
        if self.max_words < 1 or self.rate < 0 or self.decay < 0:
            raise ConfigError(f"max_words starts at 1, rate and decay at 0; got {self}.")


def fit(
    train: Dataset, dev: Dataset | None, recipe: Recipe, *, progress: Progress = silent
) -> RecurrentSubject:
    """Train and return the subject of the epoch with the best dev score (float32, frozen).

    Without dev data a tenth of the training texts is set aside, by a hash of the text. The score is
    ROC-AUC for two classes and accuracy for more. The test set is never seen.
    """
    started = time.process_time()
    dev = named_alike(train, dev)
    texts, held = split_dev(train, dev)
    subject, found = _untrained(texts, train.labels, recipe)
    known, judged = _encode(subject, texts, recipe), _encode(subject, held, recipe)
    require_every_class(known, train.labels)
    scores = _train(subject, known, judged, recipe, progress)
    subject.network.eval().requires_grad_(False)
    subject.history.update(
        recipe=asdict(recipe),
        data={"name": train.name, "sha256": train.sha256, "texts": len(known)},
        dev={"texts": len(judged), "source": "dev split" if dev else "a tenth of train, by hash"},
        left_out={"train": len(texts) - len(known), "dev": len(held) - len(judged)},
        vectors_found=found,
        dev_scores=scores,
        best_epoch=int(np.argmax(scores)) + 1,
        cpu_seconds=round(time.process_time() - started, 1),
        torch=torch.__version__,
    )
    return subject


def named_alike(train: Dataset, dev: Dataset | None) -> Dataset | None:
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
    held = [_tenth(example.text) for example in texts]
    if not any(held) or all(held):
        raise DataError(f"{train.name} has {len(texts)} texts: too few to set some aside as dev.")
    return (
        [example for example, out in zip(texts, held, strict=True) if not out],
        [example for example, out in zip(texts, held, strict=True) if out],
    )


def _tenth(text: str) -> bool:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()[0] % 10 == 0


def _untrained(
    texts: Sequence[Example], labels: tuple[str, ...], recipe: Recipe
) -> tuple[RecurrentSubject, int | None]:
    """A fresh network with its vocabulary, and how many of its words came with a vector."""
    split = recipe.tokenizer
    words = ([split.normal(w) for w in (e.tokens or split(e.text))] for e in texts)
    vocabulary = Vocabulary.count(words, min_df=recipe.min_df)
    table, found = (
        initial_vectors(recipe.embeddings, vocabulary) if recipe.embeddings else (None, None)
    )
    width = recipe.embedding if table is None else table.shape[1]
    shape = Shape(
        len(vocabulary), len(labels), recipe.encoder, recipe.attention, width, recipe.hidden
    )
    with torch.random.fork_rng(devices=[]):  # torch initialises layers from its global stream
        torch.manual_seed(recipe.seed)
        network = AttentionClassifier(shape)
    if table is not None:
        network.embedding.weight.data.copy_(table)
    return RecurrentSubject(network, vocabulary, split, labels, recipe.max_words), found


def _encode(subject: RecurrentSubject, texts: Sequence[Example], recipe: Recipe) -> list[Encoded]:
    encoded = (subject.encode(example) for example in texts)
    return [one for one in encoded if one.explained >= recipe.min_words]


def require_every_class(known: Sequence[Encoded], labels: tuple[str, ...]) -> None:
    """Refuse to train where a class has no text."""
    seen = {one.label for one in known}
    if missing := [name for number, name in enumerate(labels) if number not in seen]:
        raise DataError(f"No training text of {_quoted(missing)} is left; cannot train.")


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names)


def _train(
    subject: RecurrentSubject,
    known: Sequence[Encoded],
    judged: Sequence[Encoded],
    recipe: Recipe,
    progress: Progress,
) -> list[float]:
    """Run all epochs and leave the network at its best one."""
    network = subject.network.train()
    loss = loss_for([one.label for one in known], len(subject.labels))
    step = Step(network, loss, optimiser_for(network, recipe))
    steps = -(-len(known) // recipe.batch)
    scores: list[float] = []
    best = copy.deepcopy(network.state_dict())
    for epoch in range(recipe.epochs):
        order = shuffled_batches(known, epoch, batch=recipe.batch, seed=recipe.seed)
        for done, rows in enumerate(order, start=1):
            gold = torch.tensor([known[row].label for row in rows])
            step(collate([known[row] for row in rows]), gold)
            told = f"epoch {epoch + 1}/{recipe.epochs}"
            told += f", best dev {max(scores):.3f}" if scores else ""
            progress(epoch * steps + done, recipe.epochs * steps, told)
        scores.append(dev_score(subject, judged))
        if scores.index(max(scores)) == epoch:  # the first of equals
            best = copy.deepcopy(network.state_dict())
    network.load_state_dict(best)
    return scores


def loss_for(gold: Sequence[int], classes: int) -> nn.Module:
    """Classes weigh equally: as published for two, by inverse frequency for more."""
    counts = torch.bincount(torch.tensor(gold), minlength=classes)
    if classes == 2:
        return _BinaryLoss(pos_weight=counts[0] / counts[1])
    return nn.CrossEntropyLoss(weight=len(gold) / (classes * counts.float()))


class _BinaryLoss(nn.BCEWithLogitsLoss):
    """Summed over the batch, on the one output z that the two logits (0, z) share."""

    def __init__(self, pos_weight: Tensor) -> None:
        super().__init__(reduction="sum", pos_weight=pos_weight)

    def forward(self, logits: Tensor, gold: Tensor) -> Tensor:
        return super().forward(logits[:, 1] - logits[:, 0], gold.to(logits.dtype))


def optimiser_for(network: AttentionClassifier, recipe: Recipe) -> torch.optim.Adam:
    """AMSGrad; weight decay on everything but attention, as published."""
    attention = list(network.attention.parameters())
    inside = {id(one) for one in attention}
    others = [one for one in network.parameters() if id(one) not in inside]
    groups = [{"params": others, "weight_decay": recipe.decay}]
    if attention:
        groups.append({"params": attention, "weight_decay": 0.0})
    # fused: the dense step over the word vectors is otherwise half of the training time
    return torch.optim.Adam(groups, lr=recipe.rate, amsgrad=True, fused=True)


def shuffled_batches(
    known: Sequence[Encoded], epoch: int, *, batch: int, seed: int
) -> Iterator[list[int]]:
    """Batches of like length: sorted with ± 10 % noise on the lengths, then shuffled."""
    draw = generator(seed, f"training epoch {epoch}")
    lengths = np.array([len(one.ids) for one in known])
    order = np.argsort(lengths * draw.uniform(0.9, 1.1, len(known)), kind="stable")
    cuts = [order[at : at + batch] for at in range(0, len(order), batch)]
    for place in draw.permutation(len(cuts)):
        yield cuts[place].tolist()
