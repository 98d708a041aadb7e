"""Texts as a transformer reads them: pieces of words, special tokens, and which piece is whose."""

import json
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from heedful.core.batch import Encoded
from heedful.core.errors import DataError, ModelError
from heedful.core.values import Example
from heedful.models.recurrent.vocabulary import WordTokenizer

WORD_SPLITTER = WordTokenizer(lower=False)


@dataclass(frozen=True, eq=False)
class SubwordTokenizer:
    """A transformers tokenizer, asked for the word of every piece by its place in the text.

    `longest` bounds the tokens of a text; what is beyond is cut off and counted. Texts of more than
    one part (a pair, the turns of a chat) are one sequence to the model; the words of all parts
    stand in one row.
    """

    tokenizer: Any
    longest: int

    def __post_init__(self) -> None:
        if not getattr(self.tokenizer, "is_fast", False):
            raise ModelError(
                f"{type(self.tokenizer).__name__} cannot say where in a text a token lies; a fast "
                "tokenizer (a folder with tokenizer.json) is needed."
            )

    def encode(self, example: Example) -> Encoded:
        """Number the pieces of a text or a pair, special tokens added as the model expects."""
        if example.candidates is not None:
            raise DataError("A transformer cannot leave classes out; give rows without candidates.")
        text, words, spans = _split_words(example.text, example.tokens)
        parts = [(words, spans)]
        given: dict[str, Any] = {"text": text}
        if example.pair is not None:
            given["text_pair"] = example.pair
            _, more, places = _split_words(example.pair, None)
            parts.append((more, places))
        found = self.tokenizer(
            **given,
            truncation=True,
            max_length=self.longest,
            return_offsets_mapping=True,
            return_overflowing_tokens=True,
        )
        return self._encoded(example, found, parts)

    def encode_chat(self, example: Example) -> Encoded:
        """A chat through the template; only what was said is explained, the rest computes.

        The template writes its own special tokens: none are added.
        """
        text = self.template(example.text)
        said, at = [], 0
        for turn in json.loads(example.text):
            start = text.find(turn["content"].strip(), at)
            if start < 0:
                raise DataError("The chat template changes what was said; give texts instead.")
            at = start + len(turn["content"].strip())
            said.append((start, at))
        spans = [
            (start + a, start + b)
            for start, end in said
            for a, b in WORD_SPLITTER.spans(text[start:end])
        ]
        found = self.tokenizer(
            text=text,
            add_special_tokens=False,
            truncation=True,
            max_length=self.longest,
            return_offsets_mapping=True,
            return_overflowing_tokens=True,
        )
        return self._encoded(example, found, [([text[a:b] for a, b in spans], spans)])

    def template(self, messages: str) -> str:
        """A chat as the model reads it: the JSON list of messages through the chat template."""
        try:
            turns = json.loads(messages)
        except ValueError as error:
            raise DataError(f"messages must be a JSON list of role and content: {error}.") from None
        if not isinstance(turns, list) or not all(map(_is_turn, turns)):
            raise DataError("messages must be a JSON list of role and content, both texts.")
        if not self.tokenizer.chat_template:
            raise ModelError("The tokenizer has no chat template; give texts instead of messages.")
        text: str = self.tokenizer.apply_chat_template(
            turns, tokenize=False, add_generation_prompt=True
        )
        return text

    def _encoded(
        self, example: Example, found: Any, parts: Sequence[tuple[list[str], list[tuple[int, int]]]]
    ) -> Encoded:
        first = found.encodings[0]
        ids, types = tuple(first.ids), tuple(first.type_ids)
        offsets = [0, len(parts[0][0])]
        word = []
        for place, sequence in zip(first.offsets, first.sequence_ids, strict=True):
            if sequence is None:
                word.append(-1)
            else:
                at = _word_at(place, parts[sequence][1])
                word.append(-1 if at is None else offsets[sequence] + at)
        words = [one for part, _ in parts for one in part]
        return Encoded(
            example.index,
            example.label,
            ids,
            tuple(word),
            tuple(words),
            truncated=len(found.encodings) > 1,
            pieces=tuple(self.tokenizer.convert_ids_to_tokens(list(ids))),
            question=example.pair,
            types=types if "token_type_ids" in self.tokenizer.model_input_names else None,
        )


def _is_turn(turn: Any) -> bool:
    return isinstance(turn, dict) and all(isinstance(turn.get(k), str) for k in ("role", "content"))


def _split_words(
    text: str, tokens: tuple[str, ...] | None
) -> tuple[str, list[str], list[tuple[int, int]]]:
    """The text, its words, and where each begins and ends; given tokens are the words."""
    if tokens is None:
        spans = list(WORD_SPLITTER.spans(text))
        return text, [text[start:end] for start, end in spans], spans
    spans, at = [], 0
    for token in tokens:
        spans.append((at, at + len(token)))
        at += len(token) + 1
    return " ".join(tokens), list(tokens), spans


def _word_at(place: tuple[int, int], spans: Sequence[tuple[int, int]]) -> int | None:
    """The word that a piece belongs to: the first that it covers any of; None for space alone."""
    start, end = place
    at = max(0, bisect_right(spans, (start, float("inf"))) - 1)
    for number in range(at, len(spans)):
        begins, ends = spans[number]
        if begins >= end:
            return None
        if ends > start:
            return number
    return None
