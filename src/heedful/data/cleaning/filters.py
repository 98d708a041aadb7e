"""The cleaned rows of a split: those of its part that are neither too short nor too long."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from jaxtyping import Bool, Int64

from heedful.core.errors import ConfigError
from heedful.data.cleaning.steps import Cleaning

RowMask = Bool[np.ndarray, "rows"]
Limit = tuple[int, float]  # two exclusive bounds


@dataclass(frozen=True)
class Selection:
    """A cleaning, and the requested part where the cleaning draws its splits itself."""

    cleaning: Cleaning
    part: str | None = None

    def select_rows(
        self, lengths: Int64[np.ndarray, "rows"], labels: Sequence[str]
    ) -> tuple[RowMask, Counter[str]]:
        """The mask of kept rows, and the number of other rows by reason.

        As in the papers, texts without a word are removed first, then those of `fewer_than` words
        or more, then parts are drawn, and the bounds on length apply to each part.
        """
        left = Counter[str]()
        kept = _apply_mask(lengths > 0, np.ones(len(lengths), dtype=bool), "without a word", left)
        if (most := self.cleaning.fewer_than) is not None:
            kept = _apply_mask(lengths < most, kept, f"of {most} words or more", left)
        kept = self._part(kept, labels)
        for (low, high), reason in [*self._bounds(lengths[kept])]:
            kept = _apply_mask((lengths > low) & (lengths < high), kept, reason, left)
        return kept, left

    def require_labels(self, *, labelled: bool) -> None:
        """Raise ConfigError for splits drawn by class where labels are not read."""
        shares = self.cleaning.shares
        if self.part and shares and shares.by_class and not labelled:
            raise ConfigError(
                f"{self.cleaning.name} draws its splits by class, so it needs labels, which are "
                "not read here. Leave out the cleaning."
            )

    def _part(self, kept: RowMask, labels: Sequence[str]) -> RowMask:
        shares = self.cleaning.shares
        if self.part is None or shares is None:
            return kept
        chosen = np.flatnonzero(kept)
        names = [labels[row] for row in chosen.tolist()]
        mine = np.zeros_like(kept)
        # Keyed by the data set, not the paper: papers that followed others had the same splits.
        data_set = self.cleaning.name.rpartition("/")[2]
        mine[chosen[shares.split_mask(self.part, names, purpose=f"split of {data_set}")]] = True
        return mine

    def _bounds(self, lengths: Int64[np.ndarray, "rows"]) -> Iterator[tuple[Limit, str]]:
        """Exclusive bounds on the number of words, each with the reason for rows beyond it."""
        one = self.cleaning
        own_ends = one.own_ends and len(lengths) > 0
        if one.longer_than is not None:
            yield (one.longer_than, inf), f"of {one.longer_than} words or fewer"
        elif own_ends:
            least = int(lengths.min())
            yield (least, inf), f"shortest of the split ({least} words)"
        if one.shorter_than is not None:
            yield (-1, one.shorter_than), f"of {one.shorter_than} words or more"
        elif own_ends:
            most = int(lengths.max())
            yield (-1, most), f"longest of the split ({most} words)"


def _apply_mask(fits: RowMask, kept: RowMask, reason: str, left: Counter[str]) -> RowMask:
    """Keep the rows that fit, and count the others."""
    if gone := int((kept & ~fits).sum()):
        left[reason] += gone
    still: RowMask = kept & fits
    return still
