"""Which of a transformer's attentions is *the* attention: layer, heads, and whose row."""

from dataclasses import dataclass
from typing import Literal

from heedful.core.errors import ConfigError

POSITIONS = ("auto", "first", "last", "mean")


@dataclass(frozen=True)
class Scope:
    """The rows under audit: of one layer or all, of one head or all, of one position or all.

    `position` is the position whose row is read: the pooled token of a classifier, the last one of
    a language model, the mean over all; "auto" finds out from the model which of them its output
    depends on. Heads are averaged.
    """

    layer: int | Literal["all"] = -1
    head: int | None = None
    position: str = "auto"

    def __post_init__(self) -> None:
        if self.position not in POSITIONS:
            raise ConfigError(f"position must be auto, first, last or mean, not {self.position!r}.")
        if self.layer != "all" and not isinstance(self.layer, int):
            raise ConfigError(f"layer must be a number or all, not {self.layer!r}.")

    def of(self, layers: int, heads: int) -> "Scope":
        """The same scope with its layer counted from the front; an error if there is none."""
        if self.layer != "all" and not -layers <= self.layer < layers:
            raise ConfigError(f"The model has layers 0 to {layers - 1}; there is no {self.layer}.")
        if self.head is not None and not 0 <= self.head < heads:
            raise ConfigError(f"The model has heads 0 to {heads - 1}; there is no {self.head}.")
        layer = self.layer if self.layer == "all" else self.layer % layers
        return Scope(layer, self.head, self.position)

    def holds(self, layer: int) -> bool:
        """Whether the rows of a layer are under audit."""
        return self.layer in ("all", layer)

    def __str__(self) -> str:
        heads = "mean over heads" if self.head is None else f"head {self.head}"
        layer = "mean over layers" if self.layer == "all" else f"layer {self.layer}"
        whose = "mean over positions" if self.position == "mean" else f"{self.position} position"
        return f"{layer}, {heads}, {whose}"
