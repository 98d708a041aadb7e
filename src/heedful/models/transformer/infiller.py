"""A masked language model that fills gaps in texts and computes their pseudo-perplexity."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float64
from torch import Tensor

from heedful.core.errors import ConfigError, ModelError
from heedful.models.loading.model_folder import check_model
from heedful.models.transformer.model_info import (
    find_max_length,
    require_finite,
    require_same_sizes,
)
from heedful.models.transformer.quiet_loading import loading_transformers

MAX_LOGITS_PER_PASS = 2**24  # one logit per token and vocabulary entry


@dataclass(frozen=True, eq=False)
class InfillRequest:
    """A text, the indices of its missing words, and uniform numbers in [0, 1) to draw them by."""

    words: tuple[str, ...]
    missing: frozenset[int]
    keys: Float64[Tensor, "S W"]


@dataclass(frozen=True, eq=False)
class Infiller:
    """A masked language model of transformers and its tokenizer."""

    model: Any
    tokenizer: Any
    max_tokens: int
    token_cache: dict[str, tuple[int, ...]] = field(default_factory=dict)

    @classmethod
    def load(cls, folder: str) -> "Infiller":
        """Load a folder, without downloads, remote code or unpickling."""
        require_model_folder(folder)
        with loading_transformers(folder) as transformers:
            checked = check_model(folder)
            given, auto_class = checked.arguments, transformers.AutoModelForMaskedLM
            config = transformers.AutoConfig.from_pretrained(folder, **given)
            checked.require_buildable(auto_class, config)
            tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **given)
            model, info = auto_class.from_pretrained(
                folder,
                **given,
                use_safetensors=True,
                output_loading_info=True,
                ignore_mismatched_sizes=True,
                dtype=torch.float32,
            )
            require_same_sizes(info, folder)
            require_finite(model, folder)
        if untrained := sorted(info["missing_keys"]):
            raise ModelError(
                f"{folder} has no weights for {untrained[0]}: it is not a masked language model, "
                "or lacks its head."
            )
        if tokenizer.mask_token_id is None:
            raise ModelError(f"The tokenizer of {folder} has no mask token to fill.")
        max_tokens = find_max_length(model, tokenizer)
        return cls(model.eval().requires_grad_(False), tokenizer, max_tokens)

    @cached_property
    def special_tokens_around(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The special tokens before and after a text."""
        inner, whole = self.token_ids("a"), tuple(self.tokenizer(" a")["input_ids"])
        for place in range(len(whole)):
            if whole[place : place + len(inner)] == inner:
                return whole[:place], whole[place + len(inner) :]
        raise ModelError(
            "The tokenizer of the infilling model splits single words unlike words in texts."
        )

    @cached_property
    def candidates(self) -> tuple[Tensor, tuple[str, ...]]:
        """The tokens that are whole words, and their spelling."""
        special, size = set(self.tokenizer.all_special_ids), len(self.tokenizer)
        written = [self.tokenizer.decode([number]).strip() for number in range(size)]
        read = self.tokenizer([f" {word}" for word in written], add_special_tokens=False)
        chosen = [
            number
            for number, (word, ids) in enumerate(zip(written, read["input_ids"], strict=True))
            if number not in special and list(ids) == [number] and len(word.split()) == 1
        ]
        if not chosen:
            raise ModelError("The infilling model has no token that is a whole word.")
        return torch.tensor(chosen), tuple(written[number] for number in chosen)

    def token_ids(self, word: str) -> tuple[int, ...]:
        """The tokens of a word within a text."""
        if word not in self.token_cache:
            ids = self.tokenizer(f" {word}", add_special_tokens=False)["input_ids"]
            self.token_cache[word] = tuple(ids)
        return self.token_cache[word]

    def fill(self, gaps: Sequence[InfillRequest]) -> list[list[dict[int, str]]]:
        """For each text and sample, a word for each missing one that is not truncated.

        All missing words of a text are drawn independently, given the words that are present.
        """
        masked = []
        for gap in gaps:
            words = [None if at in gap.missing else word for at, word in enumerate(gap.words)]
            ids, spans = self._spell(words)
            masked.append((ids, {at: one[0] for at, one in enumerate(spans) if at in gap.missing}))
        filled: list[list[dict[int, str]]] = [[{} for _ in gap.keys] for gap in gaps]
        tokens, written = self.candidates
        for rows, logits in self._logits([ids for ids, _ in masked]):
            for row, scores in zip(rows, logits, strict=True):
                where = masked[row][1]
                chances = scores[list(where.values())][:, tokens].double().softmax(-1).cumsum(-1)
                keys = gaps[row].keys[:, list(where)].T * chances[:, -1:]
                at = torch.searchsorted(chances, keys.contiguous(), right=True)
                for place, samples in zip(where, at.clamp(max=len(tokens) - 1), strict=True):
                    for sample, chosen in enumerate(samples.tolist()):
                        filled[row][sample][place] = written[chosen]
        return filled

    def log_pseudo_perplexity(self, texts: Sequence[Sequence[str | None]]) -> list[float]:
        """Mean of −log p of each token given all others.

        None stands for a masked word, which is not counted. NaN for a text without words.
        """
        rows, owner, wanted = list[list[int]](), list[int](), list[tuple[int, int]]()
        for number, words in enumerate(texts):
            ids, spans = self._spell(words)
            shown = (span for word, span in zip(words, spans, strict=False) if word is not None)
            for place in chain.from_iterable(shown):
                rows.append([*ids[:place], self.mask, *ids[place + 1 :]])
                owner.append(number)
                wanted.append((place, ids[place]))
        losses: list[list[float]] = [[] for _ in texts]
        for some, logits in self._logits(rows):
            for row, scores in zip(some, logits, strict=True):
                place, token = wanted[row]
                losses[owner[row]].append(-float(scores[place].double().log_softmax(-1)[token]))
        return [sum(one) / len(one) if one else float("nan") for one in losses]

    @property
    def mask(self) -> int:
        """The id of the mask token."""
        return int(self.tokenizer.mask_token_id)

    def _spell(self, words: Sequence[str | None]) -> tuple[list[int], list[range]]:
        """The token ids, a mask for each None, truncated; the positions of each word's tokens."""
        before, after = self.special_tokens_around
        ids, spans = list(before), list[range]()
        for word in words:
            tokens = (self.mask,) if word is None else self.token_ids(word)
            if len(ids) + len(tokens) + len(after) > self.max_tokens:
                break
            spans.append(range(len(ids), len(ids) + len(tokens)))
            ids += tokens
        return [*ids, *after], spans

    def _logits(self, texts: Sequence[Sequence[int]]) -> Iterator[tuple[list[int], Tensor]]:
        """Logits at every token, in batches of texts of equal length, with their row numbers."""
        for length in sorted({len(one) for one in texts}):
            same = [row for row, one in enumerate(texts) if len(one) == length]
            size = max(1, MAX_LOGITS_PER_PASS // (length * self.model.config.vocab_size))
            for start in range(0, len(same), size):
                rows = same[start : start + size]
                ids = torch.tensor([list(texts[row]) for row in rows])
                with torch.no_grad():
                    logits = self.model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits
                yield rows, logits


def require_model_folder(folder: str) -> None:
    """Require a local transformers folder."""
    if not (Path(folder) / "config.json").is_file():
        raise ConfigError(
            f"infill must be the folder of a masked language model (with its config.json), not "
            f"{folder!r}."
        )
