"""Subword tokenization: token ids, special tokens, and the word each token belongs to."""

import json
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from heedful.core.batch import Encoded
from heedful.core.errors import DataError, ModelError
from heedful.core.values import Example
from heedful.models.loading.chat_template import apply_template
from heedful.models.loading.errors import one_line_errors
from heedful.models.recurrent.vocabulary import WordTokenizer

WORD_SPLITTER = WordTokenizer(lower=False)


@dataclass(frozen=True, eq=False)
class SubwordTokenizer:
    """A fast transformers tokenizer that assigns tokens to words by their offsets in the text.

    Texts are truncated to `max_tokens`, and marked as truncated. Texts of several parts (a pair,
    the turns of a chat) are one sequence to the model; the words of all parts form one list.
    """

    tokenizer: Any
    max_tokens: int

    def __post_init__(self) -> None:
        if not getattr(self.tokenizer, "is_fast", False):
            raise ModelError(
                f"{type(self.tokenizer).__name__} gives no offsets of tokens; use a fast tokenizer "
                "(a folder with tokenizer.json)."
            )
        with one_line_errors("The special tokens cannot be found in the vocabulary"):
            _ = self.tokenizer.all_special_ids  # an unknown token that is unknown itself never ends

    def encode(self, example: Example) -> Encoded:
        """Tokenize a text or a pair, with the special tokens of the model."""
        if example.candidates is not None:
            raise DataError("A transformer cannot exclude classes; use rows without candidates.")
        text, words, spans = _split_words(example.text, example.tokens)
        parts = [(words, spans)]
        given: dict[str, Any] = {"text": text}
        if example.pair is not None:
            given["text_pair"] = example.pair
            parts.append(_split_words(example.pair, None)[1:])
        return self._encoded(example, parts, **given)

    def encode_chat(self, example: Example) -> Encoded:
        """Tokenize a chat through its template; only the words of the messages are explained.

        The template contains the special tokens, so none are added.
        """
        text = self.template(example.text)
        spans, end = list[tuple[int, int]](), 0
        for turn in json.loads(example.text):
            content = turn["content"].strip()
            start = text.find(content, end)
            if start < 0:
                raise DataError("The chat template changes the messages; use plain texts instead.")
            spans += [(start + a, start + b) for a, b in WORD_SPLITTER.spans(content)]
            end = start + len(content)
        parts = [([text[a:b] for a, b in spans], spans)]
        return self._encoded(example, parts, text=text, add_special_tokens=False)

    def template(self, messages: str) -> str:
        """Apply the chat template to a JSON list of messages."""
        try:
            turns = json.loads(messages)
        except ValueError as error:
            raise DataError(f"messages must be a JSON list of role and content: {error}.") from None
        if not isinstance(turns, list) or not turns or not all(map(_is_turn, turns)):
            raise DataError("messages must be a JSON list of role and content, both strings.")
        if not self.tokenizer.chat_template:
            raise ModelError("The tokenizer has no chat template; use texts instead of messages.")
        with one_line_errors("The chat template cannot be read"):
            template = self.tokenizer.get_chat_template()
        return apply_template(template, turns, self.tokenizer.special_tokens_map)

    def _encoded(
        self,
        example: Example,
        parts: Sequence[tuple[list[str], list[tuple[int, int]]]],
        **given: Any,
    ) -> Encoded:
        """Tokenize what is given; `parts` are the words of each part and their character spans."""
        with one_line_errors("The tokenizer of the model fails on a text"):
            tokenized = self.tokenizer(
                **given,
                truncation=True,
                max_length=self.max_tokens,
                return_offsets_mapping=True,
                return_overflowing_tokens=True,
            )
        first = tokenized.encodings[0]
        ids, types = tuple(first.ids), tuple(first.type_ids)
        offsets = [0, len(parts[0][0])]
        word = []
        for span, sequence in zip(first.offsets, first.sequence_ids, strict=True):
            at = None if sequence is None else _word_at(span, parts[sequence][1])
            word.append(-1 if at is None else offsets[sequence] + at)
        words = [one for part, _ in parts for one in part]
        return Encoded(
            example.index,
            example.label,
            ids,
            tuple(word),
            tuple(words),
            truncated=len(tokenized.encodings) > 1,
            pieces=tuple(self.tokenizer.convert_ids_to_tokens(list(ids))),
            question=example.pair,
            types=types if "token_type_ids" in self.tokenizer.model_input_names else None,
        )


def _is_turn(turn: Any) -> bool:
    return isinstance(turn, dict) and all(isinstance(turn.get(k), str) for k in ("role", "content"))


def _split_words(
    text: str, tokens: tuple[str, ...] | None
) -> tuple[str, list[str], list[tuple[int, int]]]:
    """The text, its words and their character spans; given tokens are the words."""
    if tokens is None:
        spans = list(WORD_SPLITTER.spans(text))
        return text, [text[start:end] for start, end in spans], spans
    spans, at = [], 0
    for token in tokens:
        spans.append((at, at + len(token)))
        at += len(token) + 1
    return " ".join(tokens), list(tokens), spans


def _word_at(token: tuple[int, int], spans: Sequence[tuple[int, int]]) -> int | None:
    """The first word that a token overlaps; None for a token of spaces only."""
    start, end = token
    at = bisect_right(spans, start, key=itemgetter(1))
    return at if at < len(spans) and spans[at][0] < end else None
