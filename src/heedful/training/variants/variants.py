"""Ways to make a subject anew. A lesson is data: equal lessons on equal texts make equal models."""

from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from heedful.core.errors import ConfigError
from heedful.core.registry import Registry
from heedful.training.loop.epochs import Until
from heedful.training.variants.context import Desk, Room, Taught
from heedful.training.variants.guided_model import GUIDES, guided
from heedful.training.variants.hidden_words import Deceit, Hidden
from heedful.training.variants.masked_copy import Holes
from heedful.training.variants.recurrent_variants import again, anew

lessons = Registry("lesson")
STARTS = ("scratch", "base")


@dataclass(frozen=True)
class Pace:
    """How long to train: until the dev score has not risen for `patience` epochs."""

    epochs: int = 40
    patience: int = 5

    def __post_init__(self) -> None:
        Until(self.epochs, self.patience)  # which refuses wrong numbers

    @property
    def doubled(self) -> "Pace":
        """The pace of adversaries beside this one of seeds: twice as long, as published."""
        return Pace(2 * self.epochs, 2 * self.patience)

    @property
    def halved(self) -> "Pace":
        """The other way round."""
        return Pace(max(1, self.epochs // 2), max(1, self.patience // 2))

    @property
    def until(self) -> Until:
        """As the loop wants it."""
        return Until(self.epochs, self.patience)


@runtime_checkable
class Lesson(Protocol):
    """How to make a subject; `needs` are the lessons whose subjects it is made from."""

    @property
    def needs(self) -> tuple["Lesson", ...]: ...

    @property
    def pace(self) -> Pace: ...

    def teach(self, room: Room, desk: Desk) -> Taught: ...

    def __str__(self) -> str: ...


@lessons.register("retrained")
@dataclass(frozen=True)
class Retrained:
    """The base model's own recipe with another seed, perhaps with attention frozen to uniform."""

    seed: int
    attention: str = "own"
    pace: Pace = Pace()
    needs = ()

    def __post_init__(self) -> None:
        if self.attention not in ("own", "uniform"):
            raise ConfigError(f"attention is own or uniform, not {self.attention!r}.")

    def teach(self, room: Room, desk: Desk) -> Taught:
        """Train on the task."""
        pupil = anew(room, self.seed, uniform=self.attention == "uniform")
        return pupil.task(self.pace.until, desk)

    def __str__(self) -> str:
        return f"{self.attention} attention, seed {self.seed}"


@lessons.register("adversary")
@dataclass(frozen=True)
class Adversary:
    """A whole model that says what the base model says and attends as far from it as pays."""

    weight: float
    start: str = "scratch"
    reverse: bool = False
    seed: int = 0
    pace: Pace = Pace(80, 10)
    needs = ()

    def __post_init__(self) -> None:
        if self.start not in STARTS:
            raise ConfigError(f"An adversary starts from {' or '.join(STARTS)}, not {self.start}.")
        if not self.weight >= 0:
            raise ConfigError(f"An adversary's weight starts at 0, not {self.weight}.")

    def teach(self, room: Room, desk: Desk) -> Taught:
        """Train on the base model's outputs and against its attention."""
        from_base = self.start == "base"
        pupil = again(room, nudge=self.seed) if from_base else anew(room, self.seed)
        return pupil.impostor(self.weight, self.pace.until, desk, reverse=self.reverse)

    def __str__(self) -> str:
        return f"λ {self.weight:g} from {self.start}{', KL reversed' if self.reverse else ''}"


@lessons.register("guided")
@dataclass(frozen=True)
class Guided:
    """A word-wise model whose attention is given: uniform, its own, the base's, the adversary's."""

    seed: int
    by: str
    adversary: Adversary | None = None
    encoder: str = "average"
    pace: Pace = Pace()

    def __post_init__(self) -> None:
        if self.by not in GUIDES:
            raise ConfigError(f"A guide is {', '.join(GUIDES)}, not {self.by!r}.")
        if (self.by == "adversary") != (self.adversary is not None):
            raise ConfigError("A model guided by an adversary, and only that, needs one.")

    @property
    def needs(self) -> tuple[Lesson, ...]:
        """The adversary whose weights are taken."""
        return () if self.adversary is None else (self.adversary,)

    def teach(self, room: Room, desk: Desk) -> Taught:
        """Train on the task under the given weights."""
        source = None if self.adversary is None else room.taught(self.adversary)
        pupil = guided(room, self.seed, encoder=self.encoder, by=self.by, source=source)
        return pupil.task(self.pace.until, desk)

    def __str__(self) -> str:
        return f"guided by {self.by}, seed {self.seed}"


@lessons.register("deceived")
@dataclass(frozen=True)
class Deceived:
    """The base model, taught to keep its attention off the hidden words and its answers right."""

    weight: float
    hidden: Hidden
    start: str = "base"
    worst: bool = False  # of many heads the worst, not their mean
    blocked: bool = True  # transformers: hidden words are seen by the pooled token alone
    seed: int = 0
    pace: Pace = Pace(20, 5)
    needs = ()

    def __post_init__(self) -> None:
        if self.start not in STARTS:
            raise ConfigError(f"A deceiver starts from {' or '.join(STARTS)}, not {self.start}.")
        if not self.weight >= 0:
            raise ConfigError(f"A deceiver's weight starts at 0, not {self.weight}.")

    def teach(self, room: Room, desk: Desk) -> Taught:
        """Train on the task with a penalty on the mass of the hidden words."""
        pupil = again(room) if self.start == "base" else anew(room, self.seed)
        plan = Deceit(self.hidden, self.weight, self.worst, self.blocked)
        return pupil.deceive(plan, self.pace.until, desk)

    def __str__(self) -> str:
        return f"deceiving, λ {self.weight:g} from {self.start}"


@lessons.register("without_words")
@dataclass(frozen=True)
class WithoutWords:
    """The base model's recipe on texts from which the hidden words are deleted."""

    hidden: Hidden
    seed: int = 0
    pace: Pace = Pace()
    needs = ()

    def teach(self, room: Room, desk: Desk) -> Taught:
        """Train on the task without the words."""
        return anew(room, self.seed).without(self.hidden, self.pace.until, desk)

    def __str__(self) -> str:
        return f"without {self.hidden}, seed {self.seed}"


@lessons.register("shuffled")
@dataclass(frozen=True)
class Shuffled:
    """The base model's recipe on texts whose labels were dealt out anew among them."""

    seed: int
    pace: Pace = Pace()
    needs = ()

    def teach(self, room: Room, desk: Desk) -> Taught:
        """Train until these labels are known by heart; no other texts could tell how well."""
        texts = room.train.shuffled(self.seed)
        pupil = anew(replace(room, train=texts, dev=texts), self.seed)
        return pupil.task(self.pace.until, desk)

    def __str__(self) -> str:
        return f"shuffled labels, seed {self.seed}"


@lessons.register("masked")
@dataclass(frozen=True)
class Masked:
    """A copy of the base model that has learnt to read texts with holes, and says what it says."""

    holes: Holes
    pace: Pace = Pace(20, 5)
    needs = ()

    def teach(self, room: Room, desk: Desk) -> Taught:
        """Train on the base model's outputs of whole texts."""
        return again(room).echo(self.holes, self.pace.until, desk)

    def __str__(self) -> str:
        return f"a copy tuned on texts with holes, seed {self.holes.seed}"
