"""The cleaned rows of a split: those of its part that are neither too short nor too long."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int64

from heedful.core.errors import ConfigError
from heedful.data.cleaning.steps import Cleaning

RowMask = Bool[np.ndarray, "rows"]


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
        for fits, reason in self._bounds(lengths[kept]):
            kept = _apply_mask(fits(lengths), kept, reason, left)
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

    def _bounds(self, lengths: Int64[np.ndarray, "rows"]) -> list[tuple["LengthBounds", str]]:
        one, bounds = self.cleaning, []
        own_ends = one.own_ends and len(lengths) > 0
        if (above := one.longer_than) is not None:
            bounds.append((LengthBounds(above=above), f"of {above} words or fewer"))
        elif own_ends:
            least = int(lengths.min())
            bounds.append((LengthBounds(above=least), f"shortest of the split ({least} words)"))
        if (below := one.shorter_than) is not None:
            bounds.append((LengthBounds(below=below), f"of {below} words or more"))
        elif own_ends:
            most = int(lengths.max())
            bounds.append((LengthBounds(below=most), f"longest of the split ({most} words)"))
        return bounds


@dataclass(frozen=True)
class LengthBounds:
    """Lengths between two exclusive bounds."""

    above: int = -1
    below: int | None = None

    def __call__(self, lengths: Int64[np.ndarray, "rows"]) -> RowMask:
        below = np.inf if self.below is None else self.below
        fits: RowMask = (lengths > self.above) & (lengths < below)
        return fits


def _apply_mask(fits: RowMask, kept: RowMask, reason: str, left: Counter[str]) -> RowMask:
    """Keep the rows that fit, and count the others."""
    if gone := int((kept & ~fits).sum()):
        left[reason] += gone
    still: RowMask = kept & fits
    return still
