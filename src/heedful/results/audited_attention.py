"""Which attention a run audited, as its manifest names it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from heedful.results.run_records import sanitise_text

OTHERS = (
    "The other layers attend too, and what they do is not in the verdict: a word can reach the "
    "output through them whatever weight it has here."
)
LAYERS_JOINED = "Layers are averaged: what single layers rank differently can cancel out."
HEADS_JOINED = (
    "Heads are averaged before words are ranked: one that follows influence can be drowned by "
    "the others, and none of them alone need rank as their mean does."
)
WORDS_ONLY = (
    "Words are ranked by the weight that words have. Weight on special tokens is left out of the "
    "ranking, however much of it there is."
)
BEST_OF_MANY = (
    "Layers and heads are for looking too: of many heads some agree with leave-one-out by chance."
)


@dataclass(frozen=True, slots=True)
class AuditedAttention:
    """The attention under audit, in the manifest's words and by number where it has one."""

    words: str
    layer: int | None
    head: int | None
    position: Literal["first", "last"] | None

    @property
    def sentence(self) -> str:
        """What stands beside the verdict."""
        return f"The attention under audit: {self.words}."

    @property
    def limits(self) -> tuple[str, ...]:
        """What the choice of this attention leaves open."""
        rows = "One row of {} layer is" if self.position else "The rows of {} layer are"
        whose, rest = ("every", "") if self.layer is None else ("one", f" {OTHERS}")
        limits = [f"{rows.format(whose)} under audit ({self.words}).{rest}"]
        if self.layer is None and "layers" in self.words:
            limits.append(LAYERS_JOINED)
        if self.head is None and "heads" in self.words:
            limits.append(HEADS_JOINED)
        return (*limits, WORDS_ONLY, BEST_OF_MANY)


def read_audited_attention(manifest: Mapping[str, Any]) -> AuditedAttention | None:
    """The attention a run audited; None where the model has a single one.

    >>> made = {"attention_path": "tap", "attention": "layer 5, head 2, last position"}
    >>> read_audited_attention(made)
    AuditedAttention(words='layer 5, head 2, last position', layer=5, head=2, position='last')
    """
    path, words = manifest.get("attention_path", "own"), manifest.get("attention")
    if path == "own" or not words:
        return None
    words = sanitise_text(str(words))
    found = re.search(r"\b(first|last) position\b", words)
    position: Any = found[1] if found else None
    return AuditedAttention(words, _number("layer", words), _number("head", words), position)


def is_audited(audited: AuditedAttention | None, layer: int, head: int | None = None) -> bool:
    """Whether this layer, or this head of it, was chosen for the audit among others."""
    return audited is not None and audited.layer == layer and head in (None, audited.head)


def _number(name: str, words: str) -> int | None:
    found = re.search(rf"\b{name} (\d+)\b", words)
    return int(found[1]) if found else None
