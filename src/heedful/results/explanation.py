"""The record of an explanation of one text; no torch."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class MethodScores:
    """One method's scores of a text, with what they mean.

    `of` is what is explained (the probability of the target, say), None where the method has no
    such choice; `settings` are those that differ from the defaults.
    """

    kind: str
    signed: bool
    scores: tuple[float, ...]
    of: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The scores as `heedful explain --json` prints them; settings where there are any."""
        facts = {"kind": self.kind, "signed": self.signed, "of": self.of}
        set_so = {"settings": dict(self.settings)} if self.settings else {}
        return {**facts, **set_so, "scores": list(self.scores)}


@dataclass(frozen=True, slots=True)
class TextExplanation:
    """A text, a target class, and the scores of every method.

    `probability` is that of the target; `refused` holds the reason of every method that does not
    apply to this model or text; `truncated` says that the model did not read the text to its end.
    `question` is a question about the text, or the other text of a pair, where there is one.
    """

    text: str
    target: str
    granularity: str
    tokens: tuple[str, ...]
    methods: Mapping[str, MethodScores]
    predicted: str
    probability: float
    refused: Mapping[str, str] = field(default_factory=dict)
    truncated: bool = False
    question: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The explanation as `heedful explain --json` prints it."""
        facts = ("target", "predicted", "probability", "granularity", "truncated")
        return {
            "text": self.text,
            **({} if self.question is None else {"question": self.question}),
            **{name: getattr(self, name) for name in facts},
            "tokens": list(self.tokens),
            "methods": {name: one.to_dict() for name, one in self.methods.items()},
            "refused": dict(self.refused),
        }
