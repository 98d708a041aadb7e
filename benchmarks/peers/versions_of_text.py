"""What a subject says of a text with some of its words left out, as libraries ask it."""

from collections.abc import Sequence

import numpy as np
import torch

from heedful.core.values import Example
from heedful.models.protocols import Subject
from heedful.planted.scoring.word_scorers import encode_whole

BATCH_TOKENS = 8_000


class TextVersions:
    """One text before its subject; the class that is explained is the one it predicts."""

    def __init__(self, subject: Subject, example: Example):
        self.subject, self.question = subject, example.pair
        self.words = np.array(example.text.split(), dtype=object)
        self.encoded = encode_whole(subject, example)
        self.batch = subject.batch([self.encoded])
        self.target = int(self.probabilities([self.words])[0].argmax())

    def probabilities(self, versions: Sequence[Sequence[str]]) -> np.ndarray:
        """A row of probabilities for each version; equal ones where no word is left."""
        classes = len(self.subject.labels)
        found = np.full((len(versions), classes), 1.0 / classes)
        rows = sorted(
            (row for row, words in enumerate(versions) if len(words)),
            key=lambda row: len(versions[row]),
        )
        step = max(1, BATCH_TOKENS // (len(self.words) + 2))
        for start in range(0, len(rows), step):
            some = rows[start : start + step]
            encoded = [
                self.subject.encode(Example(row, " ".join(versions[row]), -1, pair=self.question))
                for row in some
            ]
            with torch.no_grad():
                logits = self.subject.forward(self.subject.batch(encoded)).logits
            found[some] = logits.double().softmax(-1).numpy()
        return found

    def of_kept(self, kept: np.ndarray) -> np.ndarray:
        """The probability of the explained class for rows of words that are kept or not."""
        return self.probabilities([self.words[row] for row in kept.astype(bool)])[:, self.target]

    def of_vectors(self, vectors: torch.Tensor) -> torch.Tensor:
        """Probabilities from the vectors of the text's tokens, in which gradients can be taken."""
        rows = torch.zeros(len(vectors), dtype=torch.long)
        return self.subject.forward(self.batch.select(rows), vectors).logits.softmax(-1)

    def by_word(self, scores: torch.Tensor) -> list[float]:
        """The sum over the pieces of each word, from one score per token."""
        word = torch.tensor(self.encoded.word)
        of_words = scores.new_zeros(len(self.encoded.words))
        return of_words.index_add(0, word[word >= 0], scores[word >= 0]).tolist()
