"""Train DiffMask (De Cao et al., 2020): gates that predict which words a model does not need."""

import copy
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import torch
from annotated_types import Gt, Le
from jaxtyping import Bool, Float
from torch import Tensor, autograd, nn

from heedful.core.batch import Batch, Encoded
from heedful.core.errors import DataError, ModelError
from heedful.core.files.folder_lock import lock_folder
from heedful.core.rng import generator, uniform_keys
from heedful.core.settings import PositiveFloat, PositiveInt, Repeats, Seed, check_on_init
from heedful.core.timing import Progress, no_progress
from heedful.core.values import Example
from heedful.data.batching import batches_for
from heedful.data.dataset import Dataset
from heedful.models.batch_context import BatchContext
from heedful.models.diffmask import (
    Explainer,
    GateNetwork,
    blend_with_blank,
    hard_concrete,
    load_explainer,
    log_open_probability,
    model_identity,
    save_explainer,
)
from heedful.models.internals.hidden_states import read_hidden_states
from heedful.models.protocols import HasMaskEmbedding, Subject
from heedful.models.recurrent.subject import RecurrentSubject
from heedful.numerics.tensor.distributions import kl_of_logits, positions_first
from heedful.results.outputs import output_path
from heedful.training.fit import describe_data, encode_texts, split_dev, training_identity
from heedful.training.loop.epochs import (
    Checkpoint,
    EarlyStopping,
    TrainingState,
    require_finite,
    run_epochs,
    shuffled_batches,
)
from heedful.training.recipe import NonNegativeFloat

MAX_MULTIPLIER = 200.0
FEW_LAYERS = 3  # up to this many layers the published initialisation of multipliers works
RMSPROP_ALPHA = 0.9
NOISE_MARGIN = 1e-6  # uniform draws keep this distance from 0 and 1
OPEN_GATE_TOLERANCE = 1e-4  # KL between the model and itself with every gate open


@check_on_init
@dataclass(frozen=True)
class Masking:
    """How gates are trained; `epsilon` is the KL by which the output may change.

    `rate`, `blank_rate` and `multiplier_rate` are learning rates of the gate networks, the blank
    vector and the multipliers; they rise over the first `warmup` steps. `rate` and
    `multiplier_rate` are three times the published ones, for fewer steps. On the training texts the
    budget is `aim` × epsilon, because the output changes more on other texts.

    A step updates the multiplier of one layer. With more than three layers each multiplier is
    updated so rarely that every gate closes before any multiplier has risen, and closed gates have
    no gradient that could open them. There multipliers begin at 1 / budget, where a change of the
    output by the whole budget costs as much as closing the gates by a factor of e gains, and their
    learning rate is multiplied by `layers` / 2.
    """

    epochs: Repeats = 10
    batch: PositiveInt = 32
    epsilon: PositiveFloat = 0.1
    rate: NonNegativeFloat = 1e-3
    blank_rate: NonNegativeFloat = 1e-3
    multiplier_rate: NonNegativeFloat = 1.0
    warmup: Repeats = 100
    aim: Annotated[float, Gt(0), Le(1)] = 0.7
    seed: Seed = 0

    @property
    def budget(self) -> float:
        """The KL that training aims for."""
        return self.aim * self.epsilon

    def initial_multiplier(self, layers: int) -> float:
        """The initial value of every multiplier."""
        return 1.0 if layers <= FEW_LAYERS else min(1 / self.budget, MAX_MULTIPLIER)

    def multiplier_rate_for(self, layers: int) -> float:
        """The learning rate of the multipliers."""
        return self.multiplier_rate * (1.0 if layers <= FEW_LAYERS else layers / 2)


def fit_diffmask(
    subject: Subject,
    train: Dataset,
    recipe: Masking | None = None,
    *,
    out: str | Path,
    dev: Dataset | None = None,
    progress: Progress = no_progress,
) -> Explainer:
    """Train gates for a subject on texts of its domain, write the folder `out`, return them.

    Labels are not used: the target is the model's own output. The selected epoch is the one that
    hides most among those within the budget on the dev texts, else the one nearest to the budget.
    Without dev texts a tenth of the training texts is set aside. A checkpoint is written to `out`
    after each epoch, and the same call resumes from it to the same weights. Another process that
    uses `out` is refused.
    """
    with lock_folder(place := output_path(out)):
        return _fit_diffmask(subject, train, recipe or Masking(), place, dev, progress)


def _fit_diffmask(
    subject: Subject,
    train: Dataset,
    recipe: Masking,
    out: Path,
    dev: Dataset | None,
    progress: Progress,
) -> Explainer:
    started = time.process_time()
    trainer = _start_training(subject, split_dev(train, dev), recipe)
    lagrangian, stopping = trainer.lagrangian, EarlyStopping(recipe.epochs)
    optimiser, seconds = build_diffmask_optimiser(lagrangian, recipe), time.process_time() - started
    state = TrainingState(lagrangian, optimiser, seconds=seconds)
    versions = {name: version(name) for name in ("heedful", "torch")}
    identity = training_identity(recipe, train, dev, model=model_identity(subject), **versions)
    checkpoint = Checkpoint(out, identity)
    run_epochs(trainer.epoch, state, stopping, checkpoint=checkpoint, progress=progress)
    lagrangian.load_state_dict(state.best)
    record = {
        "recipe": asdict(recipe),
        "data": describe_data(train, len(trainer.train_texts)),
        "dev": {
            "texts": len(trainer.dev_texts),
            "source": "dev" if dev else "a tenth of train, by hash",
        },
        **_outcome(trainer, state),
    }
    explainer = Explainer(lagrangian.gates, model_identity(subject), subject.family, record)
    save_explainer(explainer, out)
    checkpoint.delete()
    return load_explainer(out)


def evaluate_gates(
    explainer: Explainer, subject: Subject, texts: Iterable[Example], *, seed: int = 0
) -> tuple[list[float], list[float]]:
    """By layer, on other texts: mean KL of the output under drawn gates, mean share left open."""
    explainer.require_model(subject)
    lagrangian = LagrangianGates(copy.deepcopy(explainer.gates).float())
    frozen = _as_float32(subject)
    encoded = encode_texts(frozen, texts, min_words=1)
    trainer = DiffMaskTrainer(frozen, Masking(seed=seed), lagrangian, (), encoded)
    return trainer.evaluate_gates_by_layer()


class LagrangianGates(nn.Module):
    """Gates with one multiplier per layer, the current cost of a change of the output."""

    def __init__(self, gates: GateNetwork, multiplier: float = 1.0) -> None:
        super().__init__()
        self.gates = gates
        self.multipliers = nn.Parameter(torch.full((len(gates.widths),), multiplier))


def build_diffmask_optimiser(lagrangian: LagrangianGates, recipe: Masking) -> torch.optim.RMSprop:
    """Centred RMSprop: descent for gate networks and blank vector, ascent for the multipliers.

    Its step depends on the consistency of a gradient, not on its size: the log of a probability
    near 1 has almost no gradient, and other optimisers do not leave that region.
    """
    rate = recipe.multiplier_rate_for(len(lagrangian.multipliers))
    groups = [
        {"params": list(lagrangian.gates.probes.parameters()), "full": recipe.rate},
        {"params": [lagrangian.gates.blank], "full": recipe.blank_rate},
        {"params": [lagrangian.multipliers], "full": rate, "maximize": True},
    ]
    return torch.optim.RMSprop(groups, alpha=RMSPROP_ALPHA, centered=True)


@dataclass(frozen=True, eq=False)
class FrozenPass:
    """A batch run through the frozen subject: its logits and the hidden states of each layer."""

    subject: Subject
    batch: Batch
    embedded: Float[Tensor, "B T E"]
    logits: Float[Tensor, "B C"]
    states: Sequence[Float[Tensor, "B T _"]]

    @classmethod
    def run(cls, subject: Subject, batch: Batch) -> "FrozenPass":
        """Run the batch without gradients."""
        with torch.no_grad():
            embedded = subject.embed(batch).detach()
            logits, states = read_hidden_states(subject, batch, embedded)
        return cls(subject, batch, embedded, logits, [one.float() for one in states])

    def kl_under_gates(
        self, gates: Float[Tensor, "B T"], blank: Float[Tensor, "E"]
    ) -> Float[Tensor, "B"]:
        """KL(p ‖ p under these gates); only words are gated."""
        mask = self.batch.mask.to(gates.device)
        full = torch.where(mask, gates, 1.0).to(self.embedded)
        gated = blend_with_blank(self.embedded, full, blank.to(self.embedded))
        logits = BatchContext(self.subject, self.batch).run_logits(self.batch, gated)
        return kl_of_logits(self.logits, logits).float()


@dataclass(frozen=True, eq=False)
class DiffMaskTrainer:
    """Trains gates for a frozen subject on some texts and evaluates them on others."""

    subject: Subject
    recipe: Masking
    lagrangian: LagrangianGates
    train_texts: Sequence[Encoded]
    dev_texts: Sequence[Encoded]

    def epoch(self, number: int, state: TrainingState, progress: Progress) -> None:
        """Visit every training text once, then record the dev score in the state."""
        recipe = self.recipe
        steps = -(-len(self.train_texts) // recipe.batch)
        message = f"epoch {number + 1}/{recipe.epochs}"
        message += f", open {-state.accuracies[state.best_epoch]:.2f}" if state.scores else ""
        order = shuffled_batches(self.train_texts, number, batch=recipe.batch, seed=recipe.seed)
        for done, rows in enumerate(order, start=number * steps):
            batch = self.subject.batch([self.train_texts[row] for row in rows])
            self._step(batch, done, state.optimiser)
            progress(done + 1, recipe.epochs * steps, message)
        kl, share_open = self.evaluate_gates_by_layer()
        state.record_epoch(-max(0.0, max(kl) - recipe.epsilon), -sum(share_open) / len(share_open))

    def _step(self, batch: Batch, number: int, optimiser: torch.optim.Optimizer) -> None:
        """Minimise α · (KL − aim · ε) + mean log P(open) of one random layer; maximise it in α."""
        draw = generator(self.recipe.seed, "diffmask", number)
        layer = int(draw.integers(len(self.lagrangian.multipliers)))
        frozen, gates = FrozenPass.run(self.subject, batch), self.lagrangian.gates
        noise = draw.uniform(NOISE_MARGIN, 1 - NOISE_MARGIN, (layer + 1, *batch.ids.shape))
        logits = gates(frozen.states[: layer + 1])
        drawn = hard_concrete(logits, torch.from_numpy(noise).to(logits)).prod(0)
        kl = frozen.kl_under_gates(drawn, gates.blank).mean()
        cost = _mean_over_words(log_open_probability(logits).sum(0), batch.mask).mean()
        loss = self.lagrangian.multipliers[layer] * (kl - self.recipe.budget) + cost
        weights = list(self.lagrangian.parameters())
        # autograd.grad leaves no gradients at the weights of the frozen model
        gradients = autograd.grad(loss, weights, allow_unused=True)
        for weight, gradient in zip(weights, gradients, strict=True):
            if gradient is not None:
                require_finite(gradient, "a gradient", rate=self.recipe.rate)
            weight.grad = gradient
        for group in optimiser.param_groups:
            group["lr"] = group["full"] * min(1.0, (number + 1) / self.recipe.warmup)
        optimiser.step()
        with torch.no_grad():
            self.lagrangian.multipliers.clamp_(0.0, MAX_MULTIPLIER)

    def kl_all_hidden(self) -> float:
        """Mean KL on the dev texts with every word blank; a larger budget is no constraint."""
        total = 0.0
        with torch.no_grad():
            for frozen in self._dev_passes():
                closed = torch.zeros(frozen.batch.ids.shape)
                total += float(frozen.kl_under_gates(closed, self.lagrangian.gates.blank).sum())
        return total / len(self.dev_texts)

    def evaluate_gates_by_layer(self) -> tuple[list[float], list[float]]:
        """By layer, on the dev texts: mean KL under drawn gates, mean share of words open."""
        layers = len(self.lagrangian.multipliers)
        kl, share_open = torch.zeros(2, layers, dtype=torch.float64)
        with torch.no_grad():
            for frozen in self._dev_passes():
                logits = self.lagrangian.gates(frozen.states)
                drawn = hard_concrete(logits, self._noise(frozen.batch).to(logits)).cumprod(0)
                probability = log_open_probability(logits).cumsum(0).exp()
                for layer in range(layers):
                    blank, mask = self.lagrangian.gates.blank, frozen.batch.mask
                    kl[layer] += frozen.kl_under_gates(drawn[layer], blank).sum()
                    share_open[layer] += _mean_over_words(probability[layer], mask).sum()
        return (kl / len(self.dev_texts)).tolist(), (share_open / len(self.dev_texts)).tolist()

    def _dev_passes(self) -> Iterator[FrozenPass]:
        for rows in batches_for(self.subject, self.dev_texts):
            batch = self.subject.batch([self.dev_texts[row] for row in rows])
            yield FrozenPass.run(self.subject, batch)

    def _noise(self, batch: Batch) -> Float[Tensor, "L B T"]:
        """Uniform draws that depend on the text and the word only, not on the batch."""
        lengths, layers = batch.mask.sum(-1).tolist(), len(self.lagrangian.multipliers)
        keys = uniform_keys(
            self.recipe.seed, "diffmask, dev", batch.content, draws=layers, lengths=lengths
        )
        drawn = torch.from_numpy(keys).clamp(NOISE_MARGIN, 1 - NOISE_MARGIN).transpose(0, 1)
        positions = positions_first(batch.mask)[:, : drawn.shape[-1]].expand_as(drawn)
        noise = torch.full((layers, *batch.mask.shape), 0.5, dtype=drawn.dtype)
        return noise.scatter(-1, positions, drawn)


def _mean_over_words(values: Float[Tensor, "B T"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B"]:
    return values.masked_fill(~mask, 0.0).sum(-1) / mask.sum(-1).clamp(min=1)


def _start_training(
    subject: Subject, texts: tuple[Sequence[Example], Sequence[Example]], recipe: Masking
) -> DiffMaskTrainer:
    """Build the trainer; every input error is raised here, before the first step."""
    frozen = _as_float32(subject)
    train_texts, dev_texts = (encode_texts(frozen, some, min_words=1) for some in texts)
    if not train_texts or not dev_texts:
        raise DataError("No text has a word to hide; gates cannot be trained on these texts.")
    first = FrozenPass.run(frozen, frozen.batch(train_texts[: recipe.batch]))
    blank = first.embedded.new_zeros(first.embedded.shape[-1])
    if isinstance(frozen, HasMaskEmbedding):
        blank = frozen.mask_embedding().vector
    with torch.no_grad():
        gap = float(first.kl_under_gates(torch.ones(first.batch.ids.shape), blank.float()).max())
    if not gap <= OPEN_GATE_TOLERANCE:
        raise ModelError(
            f"{subject.family} predicts differently from its own word vectors than from its words "
            f"(KL {gap:.2g}); gates on word vectors cannot explain it."
        )
    with torch.random.fork_rng(devices=[]):  # torch initialises layers from its global stream
        torch.manual_seed(recipe.seed)
        gates = GateNetwork([one.shape[-1] for one in first.states], blank.float().cpu())
        lagrangian = LagrangianGates(gates, recipe.initial_multiplier(len(gates.widths)))
    return DiffMaskTrainer(frozen, recipe, lagrangian, train_texts, dev_texts)


def _as_float32(subject: Subject) -> Subject:
    """Recurrent subjects are audited in float64; gates are trained in float32, twice as fast."""
    if not isinstance(subject, RecurrentSubject):
        return subject
    return replace(subject, network=copy.deepcopy(subject.network).float())


def _outcome(trainer: DiffMaskTrainer, state: TrainingState) -> dict[str, Any]:
    """The result of training by layer, on the dev texts."""
    kl, share_open = trainer.evaluate_gates_by_layer()
    return {
        "kl": kl,
        "open": share_open,
        "kl_all_hidden": trainer.kl_all_hidden(),
        "multipliers": trainer.lagrangian.multipliers.tolist(),
        "within_budget": max(kl) <= trainer.recipe.epsilon,
        "best_epoch": state.best_epoch + 1,
        "cpu_seconds": round(state.seconds, 1),
        "sittings": state.sessions,
    }
