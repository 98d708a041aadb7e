"""Which attention of a transformer is audited: layer, heads, and the position of the row."""

from dataclasses import dataclass
from typing import Literal

from heedful.core.errors import ConfigError

POSITIONS = ("auto", "first", "last", "mean")


@dataclass(frozen=True)
class Scope:
    """The audited rows: of one layer or all, of one head or all, of one position or all.

    `position` selects the row that is read: "first" (the pooled token of many classifiers), "last"
    (language models) or "mean" (over all positions). "auto" detects which of them the output of
    the model depends on. Heads are averaged.
    """

    layer: int | Literal["all"] = -1
    head: int | None = None
    position: str = "auto"

    def __post_init__(self) -> None:
        if self.position not in POSITIONS:
            raise ConfigError(f"position must be auto, first, last or mean, not {self.position!r}.")
        if self.layer != "all" and not isinstance(self.layer, int):
            raise ConfigError(f"layer must be a number or all, not {self.layer!r}.")

    def resolve(self, layers: int, heads: int) -> "Scope":
        """Count the layer from the front; raise ConfigError if the layer or head does not exist."""
        if self.layer != "all" and not -layers <= self.layer < layers:
            raise ConfigError(f"The model has layers 0 to {layers - 1}; there is no {self.layer}.")
        if self.head is not None and not 0 <= self.head < heads:
            raise ConfigError(f"The model has heads 0 to {heads - 1}; there is no {self.head}.")
        layer = self.layer if self.layer == "all" else self.layer % layers
        return Scope(layer, self.head, self.position)

    def includes_layer(self, layer: int) -> bool:
        """Whether the rows of a layer are audited."""
        return self.layer in ("all", layer)

    def __str__(self) -> str:
        heads = "mean over heads" if self.head is None else f"head {self.head}"
        layer = "mean over layers" if self.layer == "all" else f"layer {self.layer}"
        whose = "mean over positions" if self.position == "mean" else f"{self.position} position"
        return f"{layer}, {heads}, {whose}"
