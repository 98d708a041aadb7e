"""Sources of the splits that a cleaning draws itself."""

import hashlib
from collections.abc import Callable, Iterator, Sequence

from heedful.core.errors import ConfigError
from heedful.data.cleaning.filters import Selection
from heedful.data.cleaning.steps import Cleaning
from heedful.data.dataset import DEV_NAMES, SINGLE_SPLIT, NumberedRow, RowSource, Source, pick_split


def pool_sources(sources: Sequence[Source]) -> RowSource:
    """All splits of the data, concatenated and numbered from 1; their digest is over theirs."""

    def read() -> Iterator[NumberedRow]:
        return enumerate((row for source in sources for _, row in source), start=1)

    def digest() -> str:
        digests = " ".join(source.sha256() for source in sources)
        return hashlib.sha256(digests.encode()).hexdigest()

    return RowSource(sources[0].name, read, digest)


def splits_after_cleaning(cleaning: Cleaning, there: tuple[str, ...]) -> tuple[str, ...]:
    """The splits of the data after cleaning."""
    shares = cleaning.shares
    if shares is None or (there == SINGLE_SPLIT and not shares.pooled):
        return there
    if shares.pooled:
        return shares.splits
    if not shares.dev or set(DEV_NAMES) & set(there) or "train" not in there:
        return there
    place = there.index("train") + 1
    return (*there[:place], "dev", *there[place:])


def select_source(
    cleaning: Cleaning, split: str, there: tuple[str, ...], source: Callable[[str], Source]
) -> tuple[Source, Selection]:
    """The source of a split's rows, and the selection of rows from it."""
    shares = cleaning.shares
    if shares is None or (there == SINGLE_SPLIT and not shares.pooled):
        return source(split), Selection(cleaning)
    wanted = "dev" if split in DEV_NAMES else split
    if shares.pooled:
        sources = tuple(source(one) for one in there)
        part = pick_split(wanted, shares.splits, name=f"{sources[0].name} under {cleaning.name}")
        return pool_sources(sources), Selection(cleaning, part)
    drawn = "dev" in splits_after_cleaning(cleaning, there) and not set(DEV_NAMES) & set(there)
    if wanted in ("train", "dev") and drawn:
        return source("train"), Selection(cleaning, wanted)
    some = wanted == "test" and shares.test
    return source(split), Selection(cleaning, "test" if some else None)


def require_same_cleaning(cleaning: str | None, before: str | None) -> None:
    """Raise ConfigError for another cleaning of a data set that was read already."""
    if cleaning is not None and cleaning != before:
        came = f"cleaned by {before}" if before else "read without a cleaning"
        raise ConfigError(
            f"The data set was {came}; {cleaning} cannot be applied to it. "
            "Give the data by its path or name, with the cleaning."
        )
