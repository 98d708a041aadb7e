"""How gates are trained to hide words without a change of output (De Cao et al., 2020)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor, autograd, nn

from heedful.core.batch import Batch, Encoded
from heedful.core.errors import ConfigError
from heedful.core.rng import generator, uniform_keys
from heedful.core.timing import Progress
from heedful.models.diffmask import GateNetwork
from heedful.models.internals.hidden_states import read_hidden_states
from heedful.models.protocols import HasLogitsOnly, Subject
from heedful.numerics.tensor.distributions import kl_of_logits, positions_first
from heedful.numerics.tensor.hard_concrete import (
    blend_with_blank,
    hard_concrete,
    log_open_probability,
)
from heedful.training.loop.batching import batches_for
from heedful.training.loop.checkpoint import TrainingState
from heedful.training.recipe import shuffled_batches

MAX_MULTIPLIER = 200.0  # of a multiplier
FEW_LAYERS = 3  # layers for which the published start serves
RMSPROP_ALPHA = 0.9  # of the running means of slopes
NOISE_MARGIN = 1e-6  # numbers drawn keep off 0 and 1


@dataclass(frozen=True)
class Masking:
    """Every choice of a training of gates; `epsilon` is the KL that the output may move by.

    Rates are of the nets, of the blank vector and of the multipliers, and rise over the first
    `warmup` steps; the first and the last are three times the published ones, for fewer steps. On
    the texts it learns from a training strives for `aim` × epsilon: others move by more.
    A step is of one layer. With more than three layers each multiplier is told so seldom that
    every gate closes before any has risen, and closed gates have no slope that could open them
    again: there multipliers begin at 1 / budget, where a move as far as allowed costs what closing
    the gates by a factor of e earns, and move faster, as `layers` / 2.
    """

    epochs: int = 10
    batch: int = 32
    epsilon: float = 0.1
    rate: float = 1e-3
    blank_rate: float = 1e-3
    multiplier_rate: float = 1.0
    warmup: int = 100
    aim: float = 0.7
    seed: int = 0

    def __post_init__(self) -> None:
        if min(self.epochs, self.batch, self.warmup) < 1:
            raise ConfigError(f"epochs, batch and warmup start at 1; got {self}.")
        if not self.epsilon > 0:
            raise ConfigError(f"epsilon must be above 0, not {self.epsilon}.")
        if not 0 < self.aim <= 1:
            raise ConfigError(f"aim is a share of epsilon, above 0 and at most 1, not {self.aim}.")
        if not min(self.rate, self.blank_rate, self.multiplier_rate) >= 0:
            raise ConfigError(f"Rates start at 0; got {self}.")

    @property
    def budget(self) -> float:
        """What a training strives for."""
        return self.aim * self.epsilon

    def begin(self, layers: int) -> float:
        """Where multipliers begin."""
        return 1.0 if layers <= FEW_LAYERS else min(1 / self.budget, MAX_MULTIPLIER)

    def rate_of_multipliers(self, layers: int) -> float:
        """How far a multiplier moves when it is told."""
        return self.multiplier_rate * (1.0 if layers <= FEW_LAYERS else layers / 2)


class LagrangianGates(nn.Module):
    """Gates with a multiplier for each layer: how much its output's move costs at present."""

    def __init__(self, gates: GateNetwork, begin: float = 1.0) -> None:
        super().__init__()
        self.gates = gates
        self.multipliers = nn.Parameter(torch.full((len(gates.widths),), begin))


def build_diffmask_optimiser(lagrangian: LagrangianGates, recipe: Masking) -> torch.optim.RMSprop:
    """Centred RMSprop: down for nets and blank, up for the multipliers.

    It steps by how steady a slope is, not by how steep: the log of a probability near 1 has next to
    no slope, and other optimisers stay there.
    """
    rate = recipe.rate_of_multipliers(len(lagrangian.multipliers))
    groups = [
        {"params": list(lagrangian.gates.probes.parameters()), "full": recipe.rate},
        {"params": [lagrangian.gates.blank], "full": recipe.blank_rate},
        {"params": [lagrangian.multipliers], "full": rate, "maximize": True},
    ]
    return torch.optim.RMSprop(groups, alpha=RMSPROP_ALPHA, centered=True)


def logits_without_attention(
    subject: Subject, batch: Batch, embedded: Float[Tensor, "B T E"]
) -> Float[Tensor, "B C"]:
    """Logits alone, without attention where the subject can leave that out."""
    if isinstance(subject, HasLogitsOnly):
        return subject.run_logits(batch, embedded)
    return subject.forward(batch, embedded).logits


@dataclass(frozen=True, eq=False)
class FrozenPass:
    """A batch before the frozen subject: what it says, and what its layers know of each token."""

    subject: Subject
    batch: Batch
    embedded: Float[Tensor, "B T E"]
    logits: Float[Tensor, "B C"]
    states: Sequence[Float[Tensor, "B T _"]]

    @classmethod
    def of(cls, subject: Subject, batch: Batch) -> "FrozenPass":
        """One pass, without any graph."""
        with torch.no_grad():
            embedded = subject.embed(batch).detach()
            logits, states = read_hidden_states(subject, batch, embedded)
        return cls(subject, batch, embedded, logits, [one.float() for one in states])

    def moved(self, gates: Float[Tensor, "B T"], blank: Float[Tensor, "E"]) -> Float[Tensor, "B"]:
        """KL(p ‖ p under these gates); only words are gated."""
        mask = self.batch.mask.to(gates.device)
        whole = torch.where(mask, gates, 1.0).to(self.embedded)
        dim = blend_with_blank(self.embedded, whole, blank.to(self.embedded))
        return kl_of_logits(
            self.logits, logits_without_attention(self.subject, self.batch, dim)
        ).float()


@dataclass(frozen=True, eq=False)
class DiffMaskTrainer:
    """Whose words are hidden, how, from which texts it is learnt, judged on which."""

    subject: Subject
    recipe: Masking
    lagrangian: LagrangianGates
    known: Sequence[Encoded]
    judged: Sequence[Encoded]

    def epoch(self, number: int, state: TrainingState, progress: Progress) -> None:
        """Every training text once, then what the gates do on the dev texts."""
        recipe = self.recipe
        steps = -(-len(self.known) // recipe.batch)
        message = f"epoch {number + 1}/{recipe.epochs}"
        message += f", open {-state.accuracies[state.best_epoch]:.2f}" if state.scores else ""
        order = shuffled_batches(self.known, number, batch=recipe.batch, seed=recipe.seed)
        for done, rows in enumerate(order):
            batch = self.subject.batch([self.known[row] for row in rows])
            self._step(batch, number * steps + done, state.optimiser)
            progress(number * steps + done + 1, recipe.epochs * steps, message)
        moved, kept = self.measured()
        state.judged(-max(0.0, max(moved) - recipe.epsilon), -sum(kept) / len(kept))

    def _step(self, batch: Batch, number: int, optimiser: torch.optim.Optimizer) -> None:
        """One layer, drawn: α · (KL − aim · ε) + mean log P(open), down for all but α."""
        draw = generator(self.recipe.seed, "diffmask", number)
        layer = int(draw.integers(len(self.lagrangian.multipliers)))
        page, gates = FrozenPass.of(self.subject, batch), self.lagrangian.gates
        noise = draw.uniform(NOISE_MARGIN, 1 - NOISE_MARGIN, (layer + 1, *batch.ids.shape))
        logits = gates(page.states[: layer + 1])
        drawn = hard_concrete(logits, torch.from_numpy(noise).to(logits)).prod(0)
        moved = page.moved(drawn, gates.blank).mean()
        cost = _mean_over_words(log_open_probability(logits).sum(0), batch.mask).mean()
        loss = self.lagrangian.multipliers[layer] * (moved - self.recipe.budget) + cost
        weights = list(self.lagrangian.parameters())
        slopes = autograd.grad(loss, weights, allow_unused=True)  # nothing is left at the model
        if not all(one is None or bool(one.isfinite().all()) for one in slopes):
            raise ConfigError(
                f"Training broke down: a gradient is not finite. Choose a lower rate than "
                f"{self.recipe.rate:g}."
            )
        for weight, slope in zip(weights, slopes, strict=True):
            weight.grad = slope
        for group in optimiser.param_groups:
            group["lr"] = group["full"] * min(1.0, (number + 1) / self.recipe.warmup)
        optimiser.step()
        with torch.no_grad():
            self.lagrangian.multipliers.clamp_(0.0, MAX_MULTIPLIER)

    def hidden(self) -> float:
        """The mean KL on the dev texts with every word blank: a larger budget would bind nobody."""
        moved = 0.0
        with torch.no_grad():
            for page in self._dev_passes():
                none = torch.zeros(page.batch.ids.shape)
                moved += float(page.moved(none, self.lagrangian.gates.blank).sum())
        return moved / len(self.judged)

    def _dev_passes(self) -> Iterator[FrozenPass]:
        for rows in batches_for(self.subject, self.judged):
            yield FrozenPass.of(
                self.subject, self.subject.batch([self.judged[row] for row in rows])
            )

    def measured(self) -> tuple[list[float], list[float]]:
        """By layer, on the dev texts: mean KL under drawn gates, mean share of words open."""
        layers = len(self.lagrangian.multipliers)
        moved, kept = torch.zeros(2, layers, dtype=torch.float64)
        with torch.no_grad():
            for page in self._dev_passes():
                logits = self.lagrangian.gates(page.states)
                drawn = hard_concrete(logits, self._noise(page.batch).to(logits)).cumprod(0)
                chance = log_open_probability(logits).cumsum(0).exp()
                for layer in range(layers):
                    moved[layer] += page.moved(drawn[layer], self.lagrangian.gates.blank).sum()
                    kept[layer] += _mean_over_words(chance[layer], page.batch.mask).sum()
        return (moved / len(self.judged)).tolist(), (kept / len(self.judged)).tolist()

    def _noise(self, batch: Batch) -> Float[Tensor, "L B T"]:
        """Numbers that belong to each text and word, whatever else is in the batch."""
        lengths, layers = batch.mask.sum(-1).tolist(), len(self.lagrangian.multipliers)
        keys = uniform_keys(
            self.recipe.seed, "diffmask, dev", batch.instances, draws=layers, lengths=lengths
        )
        drawn = torch.from_numpy(keys).clamp(NOISE_MARGIN, 1 - NOISE_MARGIN).transpose(0, 1)
        home = positions_first(batch.mask)[:, : drawn.shape[-1]].expand_as(drawn)
        return torch.full((layers, *batch.mask.shape), 0.5, dtype=drawn.dtype).scatter(
            -1, home, drawn
        )


def _mean_over_words(values: Float[Tensor, "B T"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B"]:
    """The mean over the words of each text."""
    return values.masked_fill(~mask, 0.0).sum(-1) / mask.sum(-1).clamp(min=1)
