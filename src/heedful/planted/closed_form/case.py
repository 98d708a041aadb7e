"""Cases of the planted benchmark: a kind at one difficulty and length, drawn from a seed."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from heedful.core.errors import ConfigError
from heedful.core.rng import generator
from heedful.models.protocols import Subject
from heedful.planted.closed_form.base import (
    DIFFICULTIES,
    LENGTHS,
    PlantedKind,
    PlantedSubject,
    Setting,
    Truth,
    kinds,
)
from heedful.planted.closed_form.texts import draw_rows

KINDS = (  # those of this version; plug-ins may name more, which are drawn only when asked for
    *("honest-peaked", "honest-graded", "compiled-copy", "compiled-graded"),
    *("hidden", "anti", "running", "frozen"),
    *("inert-random", "inert-proportional", "leaky", "routed"),
    *("compiled-around", "compiled-early"),
    *("redundant", "saturated"),
)
ASKED_KINDS = (  # with a question beside each text; drawn when asked for
    *("asked-peaked", "asked-graded", "asked-hidden", "asked-anti", "asked-running"),
    *("asked-inert-random", "asked-inert-proportional", "asked-leaky", "asked-alone"),
)
CASE_GRID = tuple((difficulty, length) for difficulty in DIFFICULTIES for length in LENGTHS)


@dataclass(frozen=True)
class Case:
    """One subject of the benchmark, its truth, and its texts; the subject is made when asked for.

    >>> one = Case("inert-random", "hard", 10, seed=3)
    >>> one.truth["used"], sorted(one.texts(1)[0])
    (False, ['label', 'text'])
    """

    kind: str
    difficulty: str
    length: int
    seed: int

    def __post_init__(self) -> None:
        kinds[self.kind]  # an unknown name is an error now, not when the subject is made
        if self.difficulty not in DIFFICULTIES or self.length not in LENGTHS:
            raise ConfigError(
                f"Difficulty must be one of {DIFFICULTIES} and length of {LENGTHS}; got "
                f"{self.difficulty!r} and {self.length!r}."
            )

    @property
    def truth(self) -> Truth:
        """Whether each claim holds, by construction; None where it is reported, not scored."""
        return self._kind.truth

    @property
    def subject(self) -> Subject:
        """The subject, as `heedful.audit` takes it."""
        return self.plant.subject

    @cached_property
    def plant(self) -> PlantedSubject:
        """The subject and how its texts are drawn."""
        return self._kind.plant(self._setting)

    def texts(self, count: int) -> list[dict[str, str]]:
        """Rows of text and label, the subject's own output: data for `heedful.audit`.

        Where the subject answers questions, rows of paragraph, question and label.
        """
        named = f"{self._setting.name} text"
        return draw_rows(
            self.plant,
            count,
            length=self.length,
            stream=lambda index: generator(self.seed, named, index),
        )

    @property
    def _setting(self) -> Setting:
        return Setting(self.kind, self.difficulty, self.length, self.seed)

    @property
    def _kind(self) -> PlantedKind:
        found: PlantedKind = kinds.build(self.kind)
        return found


def cases(seed: int, count: int, kinds: Sequence[str] | None = None) -> list[Case]:
    """`count` cases drawn from a seed: kinds take turns, and each goes through all its cells.

    A cell is a difficulty and a length; their order is drawn for each kind. Fewer cases are the
    first of more.

    >>> [one.kind for one in cases(0, 3, ["leaky", "routed"])]
    ['leaky', 'routed', 'leaky']
    """
    names = KINDS if kinds is None else tuple(kinds)
    if not names:
        raise ConfigError("No kinds were given; leave kinds out to have all of them.")
    made = []
    for index in range(count):
        name, turn = names[index % len(names)], index // len(names)
        order = generator(seed, f"planted cells {name}").permutation(len(CASE_GRID))
        difficulty, length = CASE_GRID[order[turn % len(CASE_GRID)]]
        own = int(generator(seed, f"planted case {name}", turn).integers(2**31))
        made.append(Case(name, difficulty, length, own))
    return made
