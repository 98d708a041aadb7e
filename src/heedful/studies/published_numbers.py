"""Published numbers, read from CSV files that give the source of each."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from heedful.studies.study import ModelSpec

PUBLISHED_FOLDER = Path(__file__).parent / "published"
SOURCES = {
    "repo": "read in the authors' result files",
    "svg": "digitised from the authors' plots, ± 0.01",
    "seed": "read in notes on the paper",
    "recalled": "recalled, not verified",
}


@dataclass(frozen=True, slots=True)
class NumberKey:
    """What a number describes; `of_class` restricts it to texts predicted as that class."""

    texts: str
    model: ModelSpec
    measure: str
    statistic: str
    of_class: str = "all"


@dataclass(frozen=True, slots=True)
class PublishedNumber:
    """A published number and its source, a key of `SOURCES`."""

    value: float
    source: str


@dataclass(frozen=True)
class PublishedNumbers:
    """The published numbers of one study."""

    figures: Mapping[NumberKey, PublishedNumber]

    @classmethod
    def of(
        cls, study: str, renamed: Mapping[ModelSpec, ModelSpec] | None = None
    ) -> "PublishedNumbers":
        """Read the numbers of a study; a study without a file has none.

        `renamed` maps models of the paper to the models of ours that they are compared with.

        >>> key = NumberKey("sst", ("bilstm", "additive"), "agreement.tau_gradient", "mean")
        >>> PublishedNumbers.of("jain-wallace-2019").figures[key]
        PublishedNumber(value=0.351, source='repo')
        """
        path, ours = PUBLISHED_FOLDER / f"{study}.csv", renamed or {}
        if not path.exists():
            return cls({})
        with path.open(encoding="utf-8", newline="") as file:
            read = [(_key(row), _published_number(row)) for row in csv.DictReader(file)]
        return cls({replace(key, model=ours.get(key.model, key.model)): one for key, one in read})

    def classes(self, texts: str, model: ModelSpec, measure: str) -> list[str]:
        """The classes that numbers of a measure are given for, all texts first."""
        found = {
            key.of_class: None
            for key in self.figures
            if (key.texts, key.model, key.measure) == (texts, model, measure)
        }
        return sorted(found, key=lambda one: (one != "all", one))


def _key(row: Mapping[str, str]) -> NumberKey:
    model = row["encoder"], row["attention"]
    return NumberKey(row["set"], model, row["measure"], row["statistic"], row["class"])


def _published_number(row: Mapping[str, str]) -> PublishedNumber:
    return PublishedNumber(float(row["value"]), row["source"])
