"""Which of the cleaned rows a split has: a part of them, and none too short or too long."""

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
    """A cleaning, and where it draws its splits itself the part of them that is asked for."""

    cleaning: Cleaning
    part: str | None = None

    def keep(
        self, lengths: Int64[np.ndarray, "rows"], labels: Sequence[str]
    ) -> tuple[RowMask, Counter[str]]:
        """Which rows are kept, and how many are not, by reason.

        The order is the papers': texts without a word go, then those over `fewer_than`, then
        parts are drawn, and the bounds on length are laid on each part.
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
        """Refuse to draw by class where classes are not read."""
        shares = self.cleaning.shares
        if self.part and shares and shares.by_class and not labelled:
            raise ConfigError(
                f"{self.cleaning.name} draws its splits class by class, so it needs labels, which "
                "are not read here. Leave the cleaning out."
            )

    def _part(self, kept: RowMask, labels: Sequence[str]) -> RowMask:
        shares = self.cleaning.shares
        if self.part is None or shares is None:
            return kept
        chosen = np.flatnonzero(kept)
        names = [labels[row] for row in chosen.tolist()]
        mine = np.zeros_like(kept)
        # Drawn for the data set, not for the paper: who followed others had the same splits.
        data_set = self.cleaning.name.rpartition("/")[2]
        mine[chosen[shares.part(self.part, names, purpose=f"split of {data_set}")]] = True
        return mine

    def _bounds(self, lengths: Int64[np.ndarray, "rows"]) -> list[tuple["LengthBounds", str]]:
        one, found = self.cleaning, []
        if one.longer_than is not None:
            found.append(
                (LengthBounds(above=one.longer_than), f"of {one.longer_than} words or fewer")
            )
        elif one.own_ends and len(lengths):
            least = int(lengths.min())
            found.append((LengthBounds(above=least), f"shortest of the split ({least} words)"))
        if one.shorter_than is not None:
            found.append(
                (LengthBounds(below=one.shorter_than), f"of {one.shorter_than} words or more")
            )
        elif one.own_ends and len(lengths):
            most = int(lengths.max())
            found.append((LengthBounds(below=most), f"longest of the split ({most} words)"))
        return found


@dataclass(frozen=True)
class LengthBounds:
    """Lengths between two bounds that are themselves outside."""

    above: int = -1
    below: int | None = None

    def __call__(self, lengths: Int64[np.ndarray, "rows"]) -> RowMask:
        below = np.inf if self.below is None else self.below
        fits: RowMask = (lengths > self.above) & (lengths < below)
        return fits


def _apply_mask(fits: RowMask, kept: RowMask, reason: str, left: Counter[str]) -> RowMask:
    """Those of the rows kept so far that fit; the others are counted."""
    if gone := int((kept & ~fits).sum()):
        left[reason] += gone
    still: RowMask = kept & fits
    return still
