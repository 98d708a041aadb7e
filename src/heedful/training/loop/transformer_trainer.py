"""The tuning of a transformer, whatever it strives for: recipe, rate, optimiser, epochs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn

from heedful.core.batch import Batch, Encoded
from heedful.core.errors import ConfigError
from heedful.core.rng import generator
from heedful.core.timing import Progress
from heedful.models.transformer.subject import TransformerSubject
from heedful.training.loop.batching import DEFAULT_BATCH_TOKENS
from heedful.training.loop.checkpoint import TrainingState
from heedful.training.loop.dev_scores import evaluate_objective, selection_score
from heedful.training.recipe import shuffled_batches
from heedful.training.variants.objectives import BatchOutput, Objective


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


@dataclass(frozen=True, eq=False)
class TransformerTrainer:
    """Who learns, how, from what, judged by what.

    With `dev_subject`, the same model as it is to read the dev texts, attention is looked at in every
    pass, and passes go without dropout: the dropped weights would be looked at else.
    """

    subject: TransformerSubject
    recipe: FineTuning
    known: Sequence[Encoded]
    judged: Sequence[Encoded]
    train_objective: Objective
    dev_objective: Objective
    dev_subject: TransformerSubject | None = None

    @property
    def reads_attention(self) -> bool:
        """Whether attention is looked at."""
        return self.dev_subject is not None

    def epoch(self, number: int, state: TrainingState, progress: Progress) -> None:
        """Every training text once, then the dev score."""
        recipe, model = self.recipe, self.subject.model
        steps = -(-len(self.known) // recipe.batch)
        total, scores = steps * recipe.epochs, state.scores
        message = f"epoch {number + 1}/{recipe.epochs}"
        message += f", best dev {max(scores):.3f}" if scores else ""
        model.train(not self.reads_attention)
        with torch.random.fork_rng(devices=[]):  # dropout draws from torch's own stream
            torch.manual_seed(_dropout_seed(recipe.seed, number))
            order = shuffled_batches(self.known, number, batch=recipe.batch, seed=recipe.seed)
            for step, rows in enumerate(order):
                done = number * steps + step
                for group in state.optimiser.param_groups:
                    group["lr"] = learning_rate_at(done, total, recipe)
                self._step(rows, state.optimiser)
                progress(done + 1, total, message)
        model.eval()
        state.judged(*self.judge())

    def batch_output(self, subject: TransformerSubject, batch: Batch) -> BatchOutput:
        """A pass as objectives look at it; without attention where nobody does."""
        under = subject.full_decoder(batch)
        if not self.reads_attention:
            logits = subject.logits(batch)
            nothing = logits.new_zeros(len(batch), 1, batch.ids.shape[1])
            return BatchOutput(batch, logits, nothing, nothing[:, 0], under)
        forward = subject.forward(batch)
        assert forward.rows is not None  # noqa: S101 - a transformer's passes have rows
        return BatchOutput(batch, forward.logits, forward.rows, forward.attention, under)

    def judge(self) -> tuple[float, float]:
        """What to choose this epoch by, and the accuracy on the dev texts.

        Where nobody looks at its attention the model runs as it is, with nothing held.
        """
        reader = self.dev_subject or self.subject
        logits, text_scores = evaluate_objective(
            self.dev_objective,
            self.judged,
            lambda texts: self.batch_output(reader, reader.batch(texts)),
            max_batch_tokens=reader.max_batch_tokens
            if self.reads_attention
            else DEFAULT_BATCH_TOKENS,
        )
        score, accuracy = selection_score(logits.double().softmax(-1), self.judged)
        return (score if text_scores is None else text_scores), accuracy

    def _step(self, rows: Sequence[int], optimiser: torch.optim.Optimizer) -> None:
        seen = self.batch_output(
            self.subject, self.subject.batch([self.known[row] for row in rows])
        )
        loss = self.train_objective.loss(seen, rows)
        optimiser.zero_grad(set_to_none=True)
        torch.autograd.backward(loss)
        norm = nn.utils.clip_grad_norm_(self.subject.model.parameters(), self.recipe.clip)
        if not bool(norm.isfinite()):
            raise ConfigError(
                f"Training broke down: a gradient is not finite. Choose a lower rate than "
                f"{self.recipe.rate:g}."
            )
        optimiser.step()


def learning_rate_at(step: int, steps: int, recipe: FineTuning) -> float:
    """The learning rate of one step, counted from 0: up to the full rate, then down towards 0."""
    warm = math.ceil(recipe.warmup * steps)
    if step < warm:
        return recipe.rate * (step + 1) / warm
    return recipe.rate * (steps - step) / (steps - warm)


def build_transformer_optimiser(model: nn.Module, recipe: FineTuning) -> torch.optim.AdamW:
    """AdamW; biases and norms, which have one axis, do not decay."""
    weights = [one for one in model.parameters() if one.dim() > 1]
    others = [one for one in model.parameters() if one.dim() <= 1]
    groups = [
        {"params": weights, "weight_decay": recipe.decay},
        {"params": others, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=recipe.rate, fused=True)


def _dropout_seed(seed: int, epoch: int) -> int:
    return int(generator(seed, f"dropout epoch {epoch}").integers(2**63))
