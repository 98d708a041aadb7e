"""Methods and subjects made for the tests of explanations: what they say is known beforehand."""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import torch

from heedful.core.errors import ConfigError, NotApplicable
from heedful.core.values import Explanation
from heedful.methods import methods
from heedful.models.recurrent.subject import RecurrentSubject
from support import subjects


@dataclass(frozen=True)
class Counting:
    """Scores 1, 2, 3 … along the text, times `scale`."""

    scale: float = 1.0
    how: Literal["plain", "minus"] = "plain"
    most: int | None = None
    of: Literal["probability", "logit"] = "probability"
    players: Literal["tokens", "words"] = "tokens"
    kind: ClassVar[str] = "saliency"
    join: ClassVar[str] = "sum"
    signed: ClassVar[bool] = True

    def __post_init__(self):
        if self.scale == 0:
            raise ConfigError("scale must not be 0.")

    def __call__(self, context, target):
        mask = context.batch.mask
        scores = mask.cumsum(-1).double() * self.scale * (-1 if self.how == "minus" else 1)
        return Explanation("counting", scores.masked_fill(~mask, 0.0), mask)


@dataclass(frozen=True)
class Norms(Counting):
    """The same, joined as norms."""

    kind: ClassVar[str] = "sensitivity"
    join: ClassVar[str] = "norm"
    signed: ClassVar[bool] = False


@dataclass(frozen=True)
class Short:
    """Serves no batch with a text of more than three tokens."""

    kind: ClassVar[str] = "attention"
    join: ClassVar[str] = "sum"
    signed: ClassVar[bool] = False

    def __call__(self, context, target):
        longest = int(context.batch.lengths.max())
        if longest > 3:
            raise NotApplicable(f"short reads three tokens at most, not {longest}.")
        mask = context.batch.mask
        return Explanation("short", mask.double(), mask)


@dataclass(frozen=True)
class Never(Short):
    """Serves nobody."""

    def __call__(self, context, target):
        raise NotApplicable("never serves nobody.")


MADE_UP = {"counting": Counting, "norms": Norms, "short": Short, "never": Never}


def registered(monkeypatch):
    """These methods and no others, for as long as a test lasts."""
    iter(methods)  # plug-ins first, so that none comes later
    monkeypatch.setattr(methods, "_parts", {})
    for name, part in MADE_UP.items():
        methods.register(name)(part)


@dataclass(frozen=True, eq=False)
class Pieced(RecurrentSubject):
    """Reads words in pieces, cut at every hyphen: `w1-w2` is one word of two."""

    def encode(self, example):
        words = example.text.split()
        pieces = [(number, one) for number, word in enumerate(words) for one in word.split("-")]
        tokens = tuple(one for _, one in pieces)
        found = super().encode(replace(example, tokens=tokens))
        kept = len(found.words)
        word = (-1, *(number for number, _ in pieces[:kept]), -1)
        spelled = ("<s>", *(f"_{one}" for one in tokens[:kept]), "</s>")
        return replace(found, word=word, words=tuple(words), pieces=spelled)


def pieced(max_words=None):
    """A random model that reads pieces."""
    one = subjects.subject()
    return Pieced(one.network, one.vocabulary, one.tokenizer, one.labels, max_words)


def forgetful(subject, most):
    """The subject, out of memory on batches of more than so many texts."""

    class Forgetful(type(subject)):
        def forward(self, batch, embedded=None):
            if len(batch) > most:
                raise torch.OutOfMemoryError("no more")
            return super().forward(batch, embedded)

    names = ("network", "vocabulary", "tokenizer", "labels", "max_words")
    return Forgetful(*(getattr(subject, name) for name in names))
