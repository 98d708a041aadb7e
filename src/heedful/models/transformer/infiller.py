"""A masked language model that fills gaps in texts, and says how surprising texts are."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float64
from torch import Tensor

from heedful.core.errors import ConfigError, ModelError
from heedful.models.transformer.quiet_loading import loading_transformers

MAX_LOGITS_PER_PASS = 2**24  # logits: a vocabulary for every token makes everything large
NO_LENGTH_LIMIT = 10**6  # what tokenizers write where they know no limit


@dataclass(frozen=True, eq=False)
class InfillRequest:
    """A text, the places of the words that are missing, and numbers in [0, 1) to draw them by."""

    words: tuple[str, ...]
    gone: frozenset[int]
    keys: Float64[Tensor, "S W"]


@dataclass(frozen=True, eq=False)
class Infiller:
    """Any masked language model of transformers with its tokenizer."""

    model: Any
    tokenizer: Any
    longest: int
    known: dict[str, tuple[int, ...]] = field(default_factory=dict)

    @classmethod
    def load(cls, folder: str) -> "Infiller":
        """From a folder; nothing is fetched, no remote code is run, nothing unpickled."""
        require_model_folder(folder)
        with loading_transformers(folder) as transformers:
            given = {"local_files_only": True, "trust_remote_code": False}
            tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **given)
            model, told = transformers.AutoModelForMaskedLM.from_pretrained(
                folder, **given, use_safetensors=True, output_loading_info=True, dtype=torch.float32
            )
        if untrained := sorted(told["missing_keys"]):
            raise ModelError(
                f"{folder} has no weights for {untrained[0]}: it is no masked language model, or "
                "lacks its head."
            )
        if tokenizer.mask_token_id is None:
            raise ModelError(f"The tokenizer of {folder} has no mask token to fill.")
        most = getattr(model.config, "max_position_embeddings", NO_LENGTH_LIMIT)
        offset = (model.config.pad_token_id or 0) + 1 if "roberta" in model.config.model_type else 0
        longest = min(most - offset, tokenizer.model_max_length)
        return cls(model.eval().requires_grad_(False), tokenizer, int(longest))

    @cached_property
    def ends(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """What the tokenizer puts before and after a text."""
        inner, whole = self.spelled("a"), tuple(self.tokenizer(" a")["input_ids"])
        for place in range(len(whole)):
            if whole[place : place + len(inner)] == inner:
                return whole[:place], whole[place + len(inner) :]
        raise ModelError("The tokenizer of the infilling model spells words apart from texts.")

    @cached_property
    def candidates(self) -> tuple[Tensor, tuple[str, ...]]:
        """The tokens that are a word each on their own, and how those are written."""
        special, size = set(self.tokenizer.all_special_ids), len(self.tokenizer)
        written = [self.tokenizer.decode([number]).strip() for number in range(size)]
        read = self.tokenizer([f" {word}" for word in written], add_special_tokens=False)
        chosen = [
            number
            for number, (word, ids) in enumerate(zip(written, read["input_ids"], strict=True))
            if word and number not in special and list(ids) == [number] and not _has_space(word)
        ]
        if not chosen:
            raise ModelError("The infilling model has no token that is a word on its own.")
        return torch.tensor(chosen), tuple(written[number] for number in chosen)

    def spelled(self, word: str) -> tuple[int, ...]:
        """The pieces of a word within a text."""
        if word not in self.known:
            ids = self.tokenizer(f" {word}", add_special_tokens=False)["input_ids"]
            self.known[word] = tuple(ids)
        return self.known[word]

    def fill(self, gaps: Sequence[InfillRequest]) -> list[list[dict[int, str]]]:
        """For each text and sample a word for each missing one; none for those beyond the end.

        All missing words of a text are drawn at once, each by its chances given the words that
        are there.
        """
        masked = [self._masked(one) for one in gaps]
        found: list[list[dict[int, str]]] = [[{} for _ in one.keys] for one in gaps]
        tokens, written = self.candidates
        for rows, logits in self._logits([ids for ids, _ in masked]):
            for row, scores in zip(rows, logits, strict=True):
                where = masked[row][1]
                chances = scores[list(where.values())][:, tokens].double().softmax(-1).cumsum(-1)
                keys = gaps[row].keys[:, list(where)].T * chances[:, -1:]
                at = torch.searchsorted(chances, keys.contiguous(), right=True)
                for place, samples in zip(where, at.clamp(max=len(tokens) - 1), strict=True):
                    for sample, chosen in enumerate(samples.tolist()):
                        found[row][sample][place] = written[chosen]
        return found

    def surprise(self, texts: Sequence[Sequence[str | None]]) -> list[float]:
        """−log p of each piece given all others, mean over the pieces: log pseudo-perplexity.

        None is a word that is hidden: it is a mask, and not counted. NaN where nothing is left.
        """
        rows, owner, wanted = list[list[int]](), list[int](), list[tuple[int, int]]()
        for number, words in enumerate(texts):
            ids, counted = self._read(words)
            for place in counted:
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
        """The number of the mask token."""
        return int(self.tokenizer.mask_token_id)

    def _masked(self, gap: InfillRequest) -> tuple[list[int], Mapping[int, int]]:
        """The text with a mask for each missing word, cut where the model ends; where they are."""
        before, after = self.ends
        ids, where = list(before), dict[int, int]()
        for place, word in enumerate(gap.words):
            pieces = (self.mask,) if place in gap.gone else self.spelled(word)
            if len(ids) + len(pieces) + len(after) > self.longest:
                break
            if place in gap.gone:
                where[place] = len(ids)
            ids += pieces
        return [*ids, *after], where

    def _read(self, words: Sequence[str | None]) -> tuple[list[int], list[int]]:
        """The pieces of a text, and the places of those that count."""
        before, after = self.ends
        ids, counted = list(before), list[int]()
        for word in words:
            pieces = (self.mask,) if word is None else self.spelled(word)
            if len(ids) + len(pieces) + len(after) > self.longest:
                break
            counted += [] if word is None else range(len(ids), len(ids) + len(pieces))
            ids += pieces
        return [*ids, *after], counted

    def _logits(self, texts: Sequence[Sequence[int]]) -> Iterator[tuple[list[int], Tensor]]:
        """Every text's logits at every token, texts of one length together."""
        lengths = sorted({len(one) for one in texts})
        for length in lengths:
            same = [row for row, one in enumerate(texts) if len(one) == length]
            size = max(1, MAX_LOGITS_PER_PASS // (length * self.model.config.vocab_size))
            for start in range(0, len(same), size):
                rows = same[start : start + size]
                ids = torch.tensor([list(texts[row]) for row in rows])
                with torch.no_grad():
                    yield (
                        rows,
                        self.model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits,
                    )


def require_model_folder(folder: str) -> None:
    """Refuse what is no transformers folder on this machine."""
    if not (Path(folder) / "config.json").is_file():
        raise ConfigError(
            f"infill must be the folder of a masked language model (with its config.json), not "
            f"{folder!r}."
        )


def _has_space(word: str) -> bool:
    return len(word.split()) != 1
