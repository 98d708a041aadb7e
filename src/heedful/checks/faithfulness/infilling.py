"""Replace words by samples of a language model, so that texts stay natural; their perplexity."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Bool, Float64, Int
from torch import Tensor

from heedful.checks.base import to_measurement
from heedful.checks.draws import draw_uniform
from heedful.checks.faithfulness.items import ItemView
from heedful.core.batch import Encoded
from heedful.core.errors import NotApplicable
from heedful.core.records import Measurement
from heedful.core.values import Example
from heedful.models.batch_context import BatchContext, OutputFunction, VariantLogits
from heedful.models.protocols import Subject
from heedful.models.transformer.infiller import Infiller, InfillRequest
from heedful.numerics.tensor.erasure_metrics import bin_sizes

INFILLED = "infilled"
LOG_PERPLEXITY = "log_perplexity"
MAX_OUTPUT_NUMBERS = 2**22  # in the outputs of one call
NO_WORDS = "the texts came without their words, so there is nothing to infill"


def require_texts(context: BatchContext) -> Sequence[Encoded]:
    """The texts with their words; raises NotApplicable where they cannot be infilled."""
    if len(context.texts) != len(context.batch):
        raise NotApplicable(NO_WORDS)
    if getattr(context.subject, "chat", False):
        raise NotApplicable("it reads chats; single words cannot be put into their template")
    return context.texts


@dataclass(frozen=True, eq=False)
class InfilledRemoval:
    """Remove words by replacing them with `samples` draws of a masked language model.

    Logits are the logarithm of the mean probabilities over the samples; other outputs are those of
    the first sample.
    """

    infiller: Infiller
    samples: int
    # by text: words removed, words without a replacement
    tried: dict[int, list[int]] = field(default_factory=dict)
    spelled: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def __call__(
        self,
        context: BatchContext,
        rows: Int[Tensor, "N"],
        gone: Bool[Tensor, "N T"],
        *,
        output: OutputFunction = BatchContext.run_logits,
    ) -> Iterator[VariantLogits]:
        width = max(len(context.subject.labels), 2**10)
        size = max(1, MAX_OUTPUT_NUMBERS // (self.samples * width))
        for some in torch.split(torch.arange(len(rows)), size):
            gaps = [*self.gaps(context, rows[some], gone[some])]
            variants = self.variants(context, rows[some], gaps)
            if output is not BatchContext.run_logits:
                first = [one[0] for one in variants]
                yield some, torch.arange(len(some)), _run_texts(context, first, output)
                continue
            flat = [text for one in variants for text in one]
            said = _run_texts(context, flat, output).double().softmax(-1)
            mean = said.reshape(len(some), self.samples, -1).mean(1)
            yield some, torch.arange(len(some)), mean.log()

    def gaps(
        self, context: BatchContext, rows: Int[Tensor, "N"], gone: Bool[Tensor, "N T"]
    ) -> Iterator[InfillRequest]:
        """Every text with its missing words, and the random numbers for their replacements."""
        texts = require_texts(context)
        lengths = [len(one.seen_words) for one in texts]
        keys = draw_uniform(context, INFILLED, draws=self.samples, lengths=lengths)
        for row, marks in zip(rows.tolist(), gone, strict=True):
            text = texts[row]
            here = marks[context.batch.present[row]].tolist()
            missing = {word for word, mark in zip(text.word, here, strict=True) if mark}
            yield InfillRequest(text.seen_words, frozenset(missing), keys[row])

    def variants(
        self, context: BatchContext, rows: Int[Tensor, "N"], gaps: Sequence[InfillRequest]
    ) -> list[list[Encoded]]:
        """The texts with their missing words replaced, sample by sample."""
        texts, subject, found = require_texts(context), context.subject, list[list[Encoded]]()
        room = getattr(subject, "max_length", None)
        for row, gap, drawn in zip(rows.tolist(), gaps, self.infiller.fill(gaps), strict=True):
            text, made = texts[row], list[Encoded]()
            for words in drawn:
                new = {
                    word: self._spelled(subject, words[word]) if word in words else ()
                    for word in sorted(gap.missing)
                }
                made.append(replace_words(text, new, room=room))
            tried = self.tried.setdefault(text.index, [0, 0])
            tried[0] += len(gap.missing)
            tried[1] += len(gap.missing - set(made[0].word))
            found.append(made)
        return found

    def words_left(self, gaps: Sequence[InfillRequest], way: str) -> list[list[str | None]]:
        """The texts' words: missing ones deleted, masked (None), or infilled (first sample)."""
        drawn: Sequence[dict[int, str]] = [{} for _ in gaps]
        if way == INFILLED:
            drawn = [one[0] for one in self.infiller.fill(gaps)]
        texts = []
        for gap, new in zip(gaps, drawn, strict=True):
            words = enumerate(gap.words)
            kept = (new.get(number) if number in gap.missing else word for number, word in words)
            texts.append([word for word in kept if way == "masking" or word is not None])
        return texts

    def not_infilled(self, context: BatchContext) -> Float64[Tensor, "B"]:
        """The share of all removed words that got no replacement."""
        each = [self.tried.get(number, [0, 0]) for number in context.batch.instances]
        return torch.tensor([less / all_ if all_ else torch.nan for all_, less in each]).double()

    def _spelled(self, subject: Subject, word: str) -> tuple[int, ...]:
        """The token ids of a word that follows another one."""
        if word not in self.spelled:
            both = subject.encode(Example(0, f"a {word}", -1, tokens=("a", word)))
            pairs = zip(both.ids, both.word, strict=True)
            self.spelled[word] = tuple(number for number, place in pairs if place == 1)
        return self.spelled[word]


def measure_perplexity(
    items: ItemView,
    by: InfilledRemoval,
    place: Int[Tensor, "B I"],
    *,
    share: float,
    ways: Sequence[str],
) -> Iterator[Measurement]:
    """Log-perplexity of whole texts and of texts without a share of their first items, by each way.

    Also the share of removed words that the language model could not replace.
    """
    context, rows = items.context, torch.arange(len(place))
    sizes = bin_sizes(items.counts, (share,))[0, :, None]
    gaps = [*by.gaps(context, rows, items.tokens(rows, (place < sizes) & items.real))]
    whole: list[list[str | None]] = [[*one.seen_words] for one in require_texts(context)]
    for name, texts in {"whole": whole, **{way: by.words_left(gaps, way) for way in ways}}.items():
        column = torch.tensor(by.infiller.log_pseudo_perplexity(texts), dtype=torch.float64)
        yield to_measurement(f"{LOG_PERPLEXITY}_{name}", column)
    yield to_measurement("not_infilled", by.not_infilled(context))


def replace_words(
    one: Encoded, new: dict[int, tuple[int, ...]], *, room: int | None = None
) -> Encoded:
    """The text with other tokens for some words; none for words that would not fit into `room`.

    >>> one = Encoded(0, 1, (2, 7, 8, 3), (-1, 0, 0, -1), ("unlike",))
    >>> replace_words(one, {0: (9,)}).ids, replace_words(one, {0: ()}).ids
    ((2, 9, 3), (2, 3))
    """
    free = float("inf") if room is None else room - sum(word not in new for word in one.word)
    ids, words, types = list[int](), list[int](), list[int]()
    done = set[int]()
    for place, (number, word) in enumerate(zip(one.ids, one.word, strict=True)):
        given: tuple[int, ...] = (number,)
        if word in new:
            given = new[word] if word not in done and len(new[word]) <= free else ()
            free -= len(given)
            done.add(word)
        ids += given
        words += [word] * len(given)
        types += [one.types[place] if one.types else 0] * len(given)
    return replace(
        one,
        ids=tuple(ids),
        word=tuple(words),
        pieces=None,
        types=None if one.types is None else tuple(types),
    )


def _run_texts(context: BatchContext, texts: Sequence[Encoded], output: OutputFunction) -> Tensor:
    """The output for each text, batched by length, equal texts once; NaN for an empty text."""
    first: dict[object, int] = {}
    alike = [first.setdefault((one.ids, one.types), row) for row, one in enumerate(texts)]
    parts: dict[int, Tensor] = {}
    for length in sorted({len(one.ids) for one in texts} - {0}):
        chosen = [row for row in first.values() if len(texts[row].ids) == length]
        size = max(1, context.budget // length)
        for start in range(0, len(chosen), size):
            rows = chosen[start : start + size]
            with torch.no_grad():
                batch = context.subject.batch([texts[row] for row in rows])
                answers = output(context, batch, None).cpu()
            parts |= dict(zip(rows, answers, strict=True))
    width = len(next(iter(parts.values()))) if parts else len(context.subject.labels)
    nothing = torch.full((width,), torch.nan, dtype=torch.float64)
    return torch.stack([parts.get(row, nothing).double() for row in alike])
