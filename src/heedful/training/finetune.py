"""Make a classifier of a pretrained transformer: a plain loop, seeded, which can be continued."""

import json
import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from torch import nn

from heedful.core.errors import ConfigError
from heedful.core.files import remove_drafts
from heedful.core.progress import Progress, silent
from heedful.core.rng import generator
from heedful.core.values import Encoded
from heedful.data.base import Dataset
from heedful.data.batching import batches
from heedful.models.classifier import new_classifier, save_classifier
from heedful.models.transformer import TransformerSubject
from heedful.training.checkpoint import Identity, State, drop, keep, take_up
from heedful.training.fit import named_alike, require_every_class, split_dev
from heedful.training.recipe import shuffled_batches
from heedful.training.score import require_dev, score_of

HISTORY = "training.json"
VERSIONED = ("heedful", "torch", "transformers", "tokenizers")


@dataclass(frozen=True)
class FineTuning:
    """Every choice of a fine-tuning run; `encoder` is a transformers folder or a hub id.

    The rate rises over the first tenth of the steps (`warmup`) and falls to zero by the last.
    """

    encoder: str
    epochs: int = 3
    batch: int = 32
    rate: float = 5e-5
    decay: float = 0.01
    warmup: float = 0.1
    clip: float = 1.0
    max_tokens: int = 512
    seed: int = 0

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.batch < 1 or self.max_tokens < 8:
            raise ConfigError(f"epochs and batch start at 1, max_tokens at 8; got {self}.")
        if not (self.rate >= 0 and self.decay >= 0 and self.clip > 0 and 0 <= self.warmup <= 1):
            raise ConfigError(
                f"rate and decay start at 0, clip is above 0, warmup is a share; got {self}."
            )


def finetune(
    train: Dataset,
    dev: Dataset | None,
    recipe: FineTuning,
    *,
    out: str | Path,
    progress: Progress = silent,
) -> TransformerSubject:
    """Fine-tune, write the model folder `out`, and return the subject of the best epoch (float32).

    Dev data and score are those of `fit`. After each epoch a checkpoint is written to `out`, which
    belongs to one process at a time: the same call again goes on from there to the same weights.
    """
    started, folder = time.process_time(), Path(out)
    dev = named_alike(train, dev)
    course, state = _begin(train, dev, recipe)
    identity = _identity(course.subject, train, dev, recipe)
    remove_drafts(folder)
    take_up(state, folder, identity)
    for epoch in range(len(state.scores), recipe.epochs):
        course.epoch(epoch, state, progress)
        now = time.process_time()
        state.seconds, started = state.seconds + now - started, now
        keep(state, folder, identity)
    course.subject.model.load_state_dict(state.best)
    course.subject.model.eval().requires_grad_(False)
    history = {**_origin(course, train, dev), **_outcome(state)}
    save_classifier(course.subject, folder, beside={HISTORY: json.dumps(history, indent=1)})
    drop(folder)
    return course.subject


def _begin(train: Dataset, dev: Dataset | None, recipe: FineTuning) -> tuple["_Course", State]:
    """Everything that can be refused is refused here, before the first step."""
    texts, held = split_dev(train, dev)
    subject, new = new_classifier(
        recipe.encoder, train.labels, seed=recipe.seed, max_tokens=recipe.max_tokens
    )
    known = [subject.encode(one) for one in texts]
    judged = [subject.encode(one) for one in held]
    require_every_class(known, train.labels)
    require_dev(judged, len(train.labels))
    state = State(subject.model, optimiser_for(subject.model, recipe))
    return _Course(subject, recipe, new, known, judged), state


@dataclass(frozen=True, eq=False)
class _Course:
    """A training: who learns, how, which of its weights are new, from what, judged by what."""

    subject: TransformerSubject
    recipe: FineTuning
    new: Sequence[str]
    known: Sequence[Encoded]
    judged: Sequence[Encoded]

    def epoch(self, epoch: int, state: State, progress: Progress) -> None:
        """Every training text once, then the dev score."""
        steps = -(-len(self.known) // self.recipe.batch)
        total, scores = steps * self.recipe.epochs, state.scores
        told = f"epoch {epoch + 1}/{self.recipe.epochs}"
        told += f", best dev {max(scores):.3f}" if scores else ""
        self.subject.model.train()
        with torch.random.fork_rng(devices=[]):  # dropout draws from torch's own stream
            torch.manual_seed(_dropout_seed(self.recipe.seed, epoch))
            batch, seed = self.recipe.batch, self.recipe.seed
            order = shuffled_batches(self.known, epoch, batch=batch, seed=seed)
            for step, rows in enumerate(order):
                done = epoch * steps + step
                for group in state.optimiser.param_groups:
                    group["lr"] = rate_at(done, total, self.recipe)
                self._step([self.known[row] for row in rows], state.optimiser)
                progress(done + 1, total, told)
        self.subject.model.eval()
        state.judged(*judge(self.subject, self.judged))

    def _step(self, texts: Sequence[Encoded], optimiser: torch.optim.Optimizer) -> None:
        gold = torch.tensor([one.label for one in texts])
        loss = nn.functional.cross_entropy(self.subject.logits(self.subject.batch(texts)), gold)
        optimiser.zero_grad(set_to_none=True)
        torch.autograd.backward(loss)
        norm = nn.utils.clip_grad_norm_(self.subject.model.parameters(), self.recipe.clip)
        if not bool(norm.isfinite()):
            raise ConfigError(
                f"Training broke down: a gradient is not finite. Choose a lower rate than "
                f"{self.recipe.rate:g}."
            )
        optimiser.step()


def rate_at(step: int, steps: int, recipe: FineTuning) -> float:
    """The learning rate of one step, counted from 0: up to the full rate, then down towards 0."""
    warm = math.ceil(recipe.warmup * steps)
    if step < warm:
        return recipe.rate * (step + 1) / warm
    return recipe.rate * (steps - step) / (steps - warm)


def optimiser_for(model: nn.Module, recipe: FineTuning) -> torch.optim.AdamW:
    """AdamW; biases and norms, which have one axis, do not decay."""
    weights = [one for one in model.parameters() if one.dim() > 1]
    others = [one for one in model.parameters() if one.dim() <= 1]
    groups = [
        {"params": weights, "weight_decay": recipe.decay},
        {"params": others, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=recipe.rate, fused=True)


def judge(subject: TransformerSubject, encoded: Sequence[Encoded]) -> tuple[float, float]:
    """The score that `fit` selects by, and accuracy.

    The model runs as it is: its attention is not looked at, and need not be held.
    """
    outputs = torch.zeros(len(encoded), len(subject.labels), dtype=torch.float64)
    with torch.no_grad():
        for rows in batches(encoded, max_batch_tokens=20_000):
            logits = subject.logits(subject.batch([encoded[row] for row in rows]))
            outputs[rows] = logits.double().softmax(-1)
    return score_of(outputs, encoded)


def _dropout_seed(seed: int, epoch: int) -> int:
    return int(generator(seed, f"dropout epoch {epoch}").integers(2**63))


def _identity(
    subject: TransformerSubject, train: Dataset, dev: Dataset | None, recipe: FineTuning
) -> Identity:
    """All that the weights depend on; a checkpoint of another training must not be taken up."""
    return {
        **asdict(recipe),
        "train": _fingerprint(train),
        "dev": _fingerprint(dev),
        "labels": list(train.labels),
        "model": subject.fingerprint(),
        **{name: version(name) for name in VERSIONED},
    }


def _fingerprint(data: Dataset | None) -> list[Any] | None:
    if data is None:
        return None
    return [data.sha256, data.split, dict(data.columns), len(data)]


def _origin(course: _Course, train: Dataset, dev: Dataset | None) -> dict[str, Any]:
    """Of what the model was made, as `fit` tells it."""
    known, judged = course.known, course.judged
    source = "dev split" if dev is not None else "a tenth of train, by hash"
    return {
        "recipe": asdict(course.recipe),
        "data": {"name": train.name, "sha256": train.sha256, "texts": len(known)},
        "dev": {"texts": len(judged), "source": source},
        "labels": list(train.labels),
        "truncated": {
            "train": sum(one.truncated for one in known),
            "dev": sum(one.truncated for one in judged),
        },
        "new_weights": list(course.new),
        "versions": {name: version(name) for name in VERSIONED},
    }


def _outcome(state: State) -> dict[str, Any]:
    return {
        "dev_scores": state.scores,
        "dev_accuracies": state.accuracies,
        "best_epoch": state.best_epoch + 1,
        "cpu_seconds": round(state.seconds, 1),
        "sittings": state.sittings,
    }
