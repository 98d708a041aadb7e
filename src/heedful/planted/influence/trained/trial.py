"""Register trained kinds: train, test the truth by trial, and train again where it fails."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, wraps

from heedful.core.errors import ConfigError
from heedful.planted.influence.kind import (
    BuildModel,
    InfluenceCase,
    InfluenceSetting,
    PlantedModel,
    influence_kind,
)
from heedful.planted.influence.proof import ProofLines, prove
from heedful.training.variants.variants import single_thread

MAX_ATTEMPTS = 6  # trainings at most, until one keeps all bounds
TRIAL_TEXTS = 24  # texts, and as many short ones, on which the bounds are tested
# stricter than those of the proof, which are to hold on all other texts, too
TRIAL_LINES = ProofLines(
    never=0.075, slack=0.03, matters=0.165, in_order=0.985, unused=0.06, used=0.27
)


@dataclass(frozen=True)
class TrialCase(InfluenceCase):
    """A case with a given subject, to be proved before it is accepted."""

    given: PlantedModel

    @cached_property
    def model(self) -> PlantedModel:
        """The given subject."""
        return self.given


def trained_kind(
    name: str,
    family: str,
    *,
    used: bool | None,
    ranks: bool | None,
    architecture: str = "recurrent",
    lengths: tuple[int, ...] = (10, 20),
) -> Callable[[BuildModel], BuildModel]:
    """Register a way to train subjects; a training that fails its proof is repeated."""

    def register(train: BuildModel) -> BuildModel:
        @wraps(train)
        def build(setting: InfluenceSetting) -> PlantedModel:
            return train_until_proved(setting, train)

        add = influence_kind(
            name,
            family,
            used=used,
            ranks=ranks,
            architecture=architecture,
            lengths=lengths,
            trained=True,
        )
        return add(build)

    return register


def train_until_proved(setting: InfluenceSetting, train: BuildModel) -> PlantedModel:
    """The first training that keeps every bound of the truth of its kind."""
    broken: list[str] = []
    for attempt in range(MAX_ATTEMPTS):
        with single_thread():
            model = train(replace(setting, attempt=attempt))
            trial = TrialCase(setting.kind, setting.length, setting.seed, model)
            bounds = prove(trial, TRIAL_TEXTS, lines=TRIAL_LINES)
        broken = [str(one) for one in bounds if not one.holds]
        if not broken:
            return replace(model, redrawn=attempt)
    raise ConfigError(
        f"None of {MAX_ATTEMPTS} trainings of {setting} keeps its bounds; the last one breaks: "
        f"{'; '.join(broken)}. Choose another seed."
    )
