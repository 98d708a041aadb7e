"""What gives scores to the words of a text: a method of the package, or any function."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float64
from torch import Tensor

from heedful.core.batch import Encoded
from heedful.core.errors import ConfigError, HeedfulError, NotApplicable, ShapeError
from heedful.core.settings import setting_types
from heedful.core.values import Example
from heedful.methods import Method, methods
from heedful.methods.base import join_pieces
from heedful.models.batch_context import BatchContext
from heedful.models.protocols import Subject

WordScorer = Callable[[Subject, Example], Sequence[float]]
"""From a subject and a text to one score per word, in the order of `text.split()`.

It raises `NotApplicable` with the reason where it does not apply. A question is in `Example.pair`;
the prediction to explain is the subject's own.
"""


@dataclass(frozen=True, eq=False)
class MethodScorer:
    """A method of the package as a `WordScorer`; the pieces of a word are joined as it declares."""

    method: Method
    seed: int = 0

    def __call__(self, subject: Subject, example: Example) -> Sequence[float]:
        encoded = encode_whole(subject, example)
        lean = self.method.kind != "attention"
        batch = subject.batch([encoded])
        context = BatchContext(subject, batch, self.seed, logits_only=lean, texts=[encoded])
        with torch.no_grad():
            found = self.method(context, context.predicted)
        scores = found.scores[0][batch.mask[0]].double().cpu()
        return join_words(encoded, scores, self.method).tolist()


def encode_whole(subject: Subject, example: Example) -> Encoded:
    """Encode a text; one that the subject truncates or splits in other words is refused."""
    encoded, words = subject.encode(example), tuple(example.text.split())
    if encoded.truncated or encoded.words[: len(words)] != words:
        raise NotApplicable(f"{subject.family} does not read every word of a text of {len(words)}.")
    return encoded


def join_words(
    encoded: Encoded, scores: Float64[Tensor, "t"], method: Method
) -> Float64[Tensor, "W"]:
    """One score per word from those of the explained tokens."""
    word = torch.tensor([one for one in encoded.word if one >= 0])
    return join_pieces(scores, word, len(encoded.words), method.join)


def build_scorers(
    names: Sequence[str], others: Mapping[str, WordScorer | Method], *, seed: int
) -> dict[str, WordScorer]:
    """Registered methods by name, then the others; no two may have one name."""
    built: dict[str, WordScorer] = {}
    for name in dict.fromkeys(names):
        players = {"players": "words"} if "players" in setting_types(methods[name]) else {}
        built[name] = MethodScorer(methods.build(name, **players), seed)
    for name, one in others.items():
        if name in built:
            raise ConfigError(f"Two methods have the name {name!r}; rename the one in `others`.")
        built[name] = MethodScorer(one, seed) if isinstance(one, Method) else one
    return built


@dataclass(frozen=True, slots=True, eq=False)
class TimedScores:
    """The scores of a text's words, or the reason that there are none, and CPU seconds."""

    scores: Float64[Tensor, "W"] | None
    reason: str
    cpu_seconds: float


def run_scorer(name: str, scorer: WordScorer, subject: Subject, example: Example) -> TimedScores:
    """One score for each word of the text; what follows them, as for a question, is left out.

    A text without scores has the reason, also where a score is not finite. Any other error ends the
    benchmark.
    """
    words, began = len(example.text.split()), time.process_time()
    try:
        given = scorer(subject, example)
    except HeedfulError as reason:
        return TimedScores(None, str(reason), time.process_time() - began)
    except Exception as error:
        raise ConfigError(
            f"{name} failed on a text of {subject.family}: {type(error).__name__}: {error}. A "
            "method that does not apply to a model raises NotApplicable."
        ) from error
    seconds = time.process_time() - began
    scores = torch.tensor([float(one) for one in given], dtype=torch.float64)[:words]
    if len(scores) < words:
        raise ShapeError(
            f"{name} must give one score for each word of a text; it gave {len(scores)} for "
            f"{words} words."
        )
    if not bool(scores.isfinite().all()):
        return TimedScores(None, f"{name} gave a score that is not finite.", seconds)
    return TimedScores(scores, "", seconds)


def time_pass(subject: Subject, example: Example) -> float:
    """CPU seconds of one forward pass, from the text to the logits."""
    began = time.process_time()
    context = BatchContext(subject, subject.batch([subject.encode(example)]), logits_only=True)
    with torch.no_grad():
        context.run_logits(context.batch)
    return time.process_time() - began
