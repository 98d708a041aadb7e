"""Cases of the planted benchmark: a kind at one difficulty and length, drawn from a seed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from types import MappingProxyType
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from heedful.core.errors import ConfigError
from heedful.core.registry import Registry
from heedful.core.rng import generator
from heedful.models.protocols import Subject
from heedful.planted.texts import VOCABULARY_SIZE, PlantedSubject, draw_rows

PLANTED_VERSION = 2  # raise it with every change of a subject, a text or a truth
DIFFICULTIES = ("easy", "middle", "hard")
LENGTHS = (10, 20, 60, 200)  # mean number of words; texts have between half and 1.5 times as many
KINDS = (  # the kinds of this version; plug-ins may register more, used only when named
    *("honest-peaked", "honest-graded", "compiled-copy", "compiled-graded"),
    *("hidden", "anti", "running", "frozen"),
    *("inert-random", "inert-proportional", "leaky", "routed"),
    *("compiled-around", "compiled-early"),
    *("redundant", "saturated"),
)
ASKED_KINDS = (  # kinds with a question for each text; used only when named
    *("asked-peaked", "asked-graded", "asked-hidden", "asked-anti", "asked-running"),
    *("asked-inert-random", "asked-inert-proportional", "asked-leaky", "asked-alone"),
)
CASE_GRID = tuple((difficulty, length) for difficulty in DIFFICULTIES for length in LENGTHS)

PlantedClaim = Literal["used", "ranks", "exclusive"]
Truth = Mapping[PlantedClaim, bool | None]  # None: reported, not scored
WordNumbers = NDArray[np.float64]
CellT = TypeVar("CellT")


@dataclass(frozen=True)
class Setting:
    """What determines the numbers of a subject.

    Fingerprints of subjects contain its repr: the names of the class and its fields are fixed.
    """

    kind: str
    difficulty: str
    length: int
    seed: int

    @property
    def name(self) -> str:
        """The key of the random streams, together with the seed."""
        return f"planted {PLANTED_VERSION} {self.kind} {self.difficulty} {self.length}"

    @property
    def longest(self) -> int:
        """The largest number of words in a text of this length."""
        return self.length + self.length // 2

    @property
    def growth(self) -> float:
        """√(length / 20): how sums of as many random terms grow."""
        return float(np.sqrt(self.length / 20))

    @cached_property
    def draw(self) -> np.random.Generator:
        """The random stream for the subject's numbers."""
        return generator(self.seed, self.name)

    def pick(self, easy: float, middle: float, hard: float) -> float:
        """The value for this difficulty."""
        return dict(zip(DIFFICULTIES, (easy, middle, hard), strict=True))[self.difficulty]

    def even(self, low: float, high: float) -> WordNumbers:
        """One uniform number per word."""
        return self.draw.uniform(low, high, VOCABULARY_SIZE)

    def normal(self, scale: float) -> WordNumbers:
        """One normal number per word, centred on their mean.

        With a mean other than 0, sums over long texts would nearly all have the same sign.
        """
        drawn: WordNumbers = self.draw.normal(0.0, scale, VOCABULARY_SIZE)
        return drawn - float(drawn.mean())

    def signs(self) -> WordNumbers:
        """−1 for even word numbers (the first class), 1 for odd ones (the second class)."""
        return np.where(np.arange(VOCABULARY_SIZE) % 2, 1.0, -1.0)


BuildSubject = Callable[[Setting], PlantedSubject]


@dataclass(frozen=True)
class PlantedKind:
    """A way to build subjects and their truth; its docstring says why the truth holds."""

    truth: Truth
    plant: BuildSubject


kinds = Registry("planted kind")


def register_kind(
    name: str,
    *,
    used: bool | None,
    ranks: bool | None,
    exclusive: bool | None,
    why: str | None = None,
) -> Callable[[BuildSubject], PlantedKind]:
    """Register a way to build subjects with its truth; `why` is its docstring by default."""

    def register(plant: BuildSubject) -> PlantedKind:
        kind = PlantedKind(make_truth(used=used, ranks=ranks, exclusive=exclusive), plant)

        def build_kind() -> PlantedKind:
            return kind

        build_kind.__doc__ = why or plant.__doc__
        kinds.register(name)(build_kind)
        return kind

    return register


def make_truth(*, used: bool | None, ranks: bool | None, exclusive: bool | None) -> Truth:
    """A read-only truth; None means reported, not scored."""
    return MappingProxyType({"used": used, "ranks": ranks, "exclusive": exclusive})


@dataclass(frozen=True)
class Case:
    """One subject of the benchmark, its truth and its texts; the subject is built on first use.

    >>> one = Case("inert-random", "hard", 10, seed=3)
    >>> one.truth["used"], sorted(one.texts(1)[0])
    (False, ['label', 'text'])
    """

    kind: str
    difficulty: str
    length: int
    seed: int

    def __post_init__(self) -> None:
        kinds[self.kind]  # raises UnknownName now, not when the subject is built
        if self.difficulty not in DIFFICULTIES or self.length not in LENGTHS:
            raise ConfigError(
                f"Difficulty must be one of {DIFFICULTIES} and length one of {LENGTHS}; got "
                f"{self.difficulty!r} and {self.length!r}."
            )

    @property
    def truth(self) -> Truth:
        """Whether each claim holds, by construction; None: reported, not scored."""
        return self._kind.truth

    @property
    def subject(self) -> Subject:
        """The subject, ready for `heedful.audit`."""
        return self.plant.subject

    @cached_property
    def plant(self) -> PlantedSubject:
        """The subject and how its texts are drawn."""
        return self._kind.plant(self._setting)

    def texts(self, count: int) -> list[dict[str, str]]:
        """The first `count` rows of text and label (the subject's own output).

        Kinds with questions give rows of paragraph, question and label.
        """
        stream = partial(generator, self.seed, f"{self._setting.name} text")
        return draw_rows(self.plant, count, length=self.length, stream=stream)

    @property
    def _setting(self) -> Setting:
        return Setting(self.kind, self.difficulty, self.length, self.seed)

    @property
    def _kind(self) -> PlantedKind:
        kind: PlantedKind = kinds.build(self.kind)
        return kind


def cases(seed: int, count: int, kinds: Sequence[str] | None = None) -> list[Case]:
    """Draw `count` cases from a seed.

    Kinds take turns; each kind goes through all pairs of difficulty and length in an order of its
    own. The first cases do not depend on `count`. `kinds` is `KINDS` by default.

    >>> [one.kind for one in cases(0, 3, ["leaky", "routed"])]
    ['leaky', 'routed', 'leaky']
    """
    names = KINDS if kinds is None else tuple(kinds)
    drawn = draw_cells(seed, count, names, CASE_GRID, keys=("planted cells", "planted case"))
    return [Case(name, *cell, seed=own) for name, cell, own in drawn]


def draw_cells(
    seed: int, count: int, names: Sequence[str], grid: Sequence[CellT], *, keys: tuple[str, str]
) -> Iterator[tuple[str, CellT, int]]:
    """Names in turn, each with the next cell of its own order of the grid, and a drawn seed."""
    if not names:
        raise ConfigError("No kinds were given; leave kinds out to use all of them.")
    for index in range(count):
        name, turn = names[index % len(names)], index // len(names)
        order = generator(seed, f"{keys[0]} {name}").permutation(len(grid))
        own = int(generator(seed, f"{keys[1]} {name}", turn).integers(2**31))
        yield name, grid[order[turn % len(grid)]], own
