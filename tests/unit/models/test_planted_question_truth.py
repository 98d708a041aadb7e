"""The truth of every planted kind with questions, proved: by the kind it is made of, and by trying.

For each question such a subject is one without, its log-odds z bent to S·tanh(z/S); that is proved
here, and so is how little is bent. What of z holds in the kind without questions is proved in
`test_planted_truth.py`.
"""

from functools import cache

import numpy as np
import pytest
import torch
from scipy.optimize import brentq
from scipy.stats import kendalltau

from heedful.core.errors import DataError
from heedful.core.values import Example, QueryDecoder
from heedful.planted import ASKED_KINDS, Case, row_to_example
from heedful.planted.closed_form.question_kinds import MAX_SCALED_LOG_ODDS, MIN_SLOPE
from heedful.planted.closed_form.subjects import ANSWER_MARGIN
from heedful.planted.texts import QUESTION_WORD_SHIFT, QUESTIONS
from support.planted_cases import SEED, Seen, cells_of

SAME = 0.05  # outputs that lie no farther apart count as the same
TRUTH = {  # committed before any rule was held against it: used, ranks, exclusive
    "asked-peaked": (True, True, True),
    "asked-graded": (True, True, None),
    "asked-hidden": (True, False, None),
    "asked-anti": (True, False, None),
    "asked-running": (True, False, None),
    "asked-inert-random": (False, False, False),
    "asked-inert-proportional": (False, True, False),
    "asked-leaky": (False, False, False),
    "asked-alone": (False, None, False),
}


def cells(claim, truth):
    place = ("used", "ranks", "exclusive").index(claim)
    return cells_of([kind for kind, all_three in TRUTH.items() if all_three[place] is truth])


class AskedSeen(Seen):
    """A case whose texts have a question each."""

    @property
    def asked(self):
        return [int(row["question"].split()[0][1:]) for row in self.rows]

    @property
    def roles(self):
        """The words of each text, numbered as they are to its question."""
        return [
            [
                (int(word[1:]) + QUESTION_WORD_SHIFT * asked) % 400
                for word in row["paragraph"].split()
            ]
            for row, asked in zip(self.rows, self.asked, strict=True)
        ]

    def odds(self, logits):
        """Log-odds of the question's second answer against its first."""
        two = [logits[row][..., [2 * k, 2 * k + 1]] for row, k in enumerate(self.asked)]
        return torch.stack([one[..., 1] - one[..., 0] for one in two])

    def moves(self, weights):
        """How far weights move the output (TVD)."""
        with torch.no_grad():
            other = self.context.decode(weights).softmax(-1)
        return 0.5 * (other - self.context.forward.probabilities).abs().sum(-1)

    def on_one_word(self):
        """All weight on the first word, on the second, …; the longest text says how many."""
        mask, own = self.context.batch.mask, self.context.forward.attention
        for place in range(mask.shape[1]):
            alone = torch.zeros_like(own)
            alone[:, place] = 1.0
            yield torch.where(mask[:, place, None], alone, own)

    @property
    def worst(self):
        """With all weight on the word that moves most: z lies between what single words say."""
        return torch.stack([self.moves(one) for one in self.on_one_word()]).amax(0).numpy()

    @property
    def deleted(self):
        """Of each text: weights, and how far deleting each word moves the output (TVD)."""
        context = self.context
        own = context.forward.probabilities[:, None]
        moved = 0.5 * (context.without_each.softmax(-1) - own).abs().sum(-1)
        for row, mask in enumerate(context.batch.mask):
            yield context.forward.attention[row][mask].numpy(), moved[row][mask].numpy()

    @property
    def ordered(self):
        return np.array([kendalltau(*pair).statistic for pair in self.deleted])


@cache
def seen(kind, difficulty, length):
    return AskedSeen(Case(kind, difficulty, length, SEED))


def test_the_truth_is_the_one_committed():
    assert tuple(TRUTH) == ASKED_KINDS
    for kind, truth in TRUTH.items():
        assert tuple(Case(kind, "easy", 10, 0).truth.values()) == truth


@cells_of(ASKED_KINDS)
def test_for_each_question_it_is_a_subject_without_one_bent(kind, difficulty, length):
    case, subject = seen(kind, difficulty, length), seen(kind, difficulty, length).case.subject
    forward, bent = case.context.forward, case.odds(case.context.forward.logits)
    assert case.context.parity < 1e-9
    assert len(set(case.asked)) == QUESTIONS
    for row, (roles, asked) in enumerate(zip(case.roles, case.asked, strict=True)):
        part = subject.parts[asked]
        text = " ".join(f"w{number}" for number in roles)
        alone = part.forward(part.batch([part.encode(Example(0, text, -1))]))
        tone = float(subject.tones[int(case.rows[row]["question"].split()[1][1:])])
        z = float(alone.logits[0, 1] - alone.logits[0, 0]) + tone
        assert float(bent[row]) == pytest.approx(subject.scale * np.tanh(z / subject.scale))
        own = forward.attention[row][case.context.batch.mask[row]]
        torch.testing.assert_close(own, alone.attention[0], rtol=1e-9, atol=1e-12)
        assert int(forward.predicted[row]) == 2 * asked + (z > 0)
        assert case.rows[row]["label"] == f"{'yes' if z > 0 else 'no'}{asked}"


@cells_of(ASKED_KINDS)
def test_little_is_bent_and_other_answers_have_no_chance(kind, difficulty, length):
    case, scale = seen(kind, difficulty, length), seen(kind, difficulty, length).case.subject.scale
    whole, parts = case.odds(case.context.forward.logits), case.odds(case.context.without_each)
    assert (whole.abs() <= scale * np.tanh(MAX_SCALED_LOG_ODDS) + 1e-12).all()
    assert (1 - (whole / scale) ** 2 >= 0.88).all()  # the slope of S·tanh(z/S)
    assert (1 - (parts[case.context.batch.mask] / scale) ** 2 >= MIN_SLOPE).all()
    p = case.context.forward.probabilities
    mine = torch.tensor([[2 * k, 2 * k + 1] for k in case.asked])
    assert (1 - p.gather(1, mine).sum(1) <= 0.005).all()


@cells("used", True)
def test_where_attention_is_used_shuffling_it_moves_the_output(kind, difficulty, length):
    case, draw = seen(kind, difficulty, length), np.random.default_rng(0)
    attention, moved = case.context.forward.attention, []
    for _ in range(10):
        other = attention.clone()
        for row, inside in enumerate(case.context.batch.mask):
            places = inside.nonzero()[:, 0]
            other[row, places] = attention[row, places[draw.permutation(len(places))]]
        moved.append(case.moves(other).numpy())
    assert np.median(np.median(moved, axis=0)) > SAME
    assert np.median(case.worst) > 4 * SAME


@cells("used", False)
def test_where_attention_is_not_used_no_attention_moves_the_output(kind, difficulty, length):
    exact = kind.startswith("asked-inert") or (kind == "asked-leaky" and difficulty == "easy")
    assert seen(kind, difficulty, length).worst.max() <= (1e-12 if exact else 0.02)


@cells("exclusive", False)
def test_a_distant_attention_gives_the_same_output(kind, difficulty, length):
    case = seen(kind, difficulty, length)
    attention = case.context.forward.attention
    inside = attention.masked_fill(~case.context.batch.mask, 2.0)
    other = torch.nn.functional.one_hot(inside.argmin(-1), attention.shape[1]).double()
    assert (0.5 * (other - attention).abs().sum(-1)).min() >= 0.8
    assert case.moves(other).max() <= 0.02


@cells("exclusive", True)
def test_every_attention_with_the_same_output_is_near(kind, difficulty, length):
    case = seen(kind, difficulty, length)
    subject, forward = case.case.subject, case.context.forward
    for row, (roles, asked) in enumerate(zip(case.roles, case.asked, strict=True)):
        weights = forward.attention[row][case.context.batch.mask[row]].numpy()
        side = 1 if int(forward.predicted[row]) % 2 else -1
        said, cue = side * subject.parts[asked].table[roles, 1].numpy(), int(weights.argmax())
        least = _least(subject.scale, float(forward.probabilities[row].max()) - SAME)
        rest = np.delete(said, cue).max()
        kept = (least - rest) / (said[cue] - rest)  # of the weight, for z to reach `least`
        assert kept >= 0.62
        assert 1 - min(kept, weights[cue]) <= 0.38  # the farthest any of them can lie (TVD)


def _least(scale, chance):
    """The z at which the likelier answer has this chance, written out for six answers."""

    def beyond(z):
        half, others = 0.5 * scale * np.tanh(z / scale), 4 * np.exp(-2 * ANSWER_MARGIN)
        return np.exp(half) / (np.exp(half) + np.exp(-half) + others) - chance

    return brentq(beyond, -10, 10)


@cells("ranks", True)
def test_attention_orders_words_as_deletion_does(kind, difficulty, length):
    case = seen(kind, difficulty, length)
    assert np.mean(case.ordered) > 0.75
    for weights, moved in case.deleted:
        assert kendalltau(weights, moved).statistic > 0.3


@cells("ranks", False)
def test_attention_does_not_order_words_as_deletion_does(kind, difficulty, length):
    case = seen(kind, difficulty, length)
    assert np.mean(case.ordered) < (-0.5 if kind == "asked-anti" else 0.25)
    for (weights, moved), roles in zip(case.deleted, case.roles, strict=True):
        if kind == "asked-hidden":
            (cue,) = np.flatnonzero(np.array(roles) < case.case.plant.cues)
            assert moved[cue] == moved.max()
            assert weights[cue] == weights.min()


@pytest.mark.parametrize("kind", ["asked-inert-random", "asked-leaky"])
def test_scores_know_nothing_of_what_words_add(kind):
    for part in seen(kind, "hard", 20).case.subject.parts:
        scores, adds = part.table[:, 0], part.table[:, 1].abs()
        assert abs(kendalltau(scores, adds).statistic) < 0.13  # 400 pairs: 0 ± 0.033


def test_another_question_is_another_answer_and_another_attention():
    subject = seen("asked-peaked", "easy", 20).case.subject
    row = seen("asked-peaked", "easy", 20).rows[0]
    asked = [{**row, "question": f"q{number} t0"} for number in range(QUESTIONS)]
    forward = subject.forward(
        subject.batch([subject.encode(row_to_example(one, 0)) for one in asked])
    )
    assert (forward.predicted // 2).tolist() == [0, 1, 2]
    assert not torch.allclose(forward.attention[0], forward.attention[1])


def test_the_decoder_is_the_papers_and_a_question_must_be_there():
    case = seen("asked-alone", "hard", 10)
    decoder = case.case.subject.decoder(case.context.batch, case.context.forward)
    assert isinstance(decoder, QueryDecoder)
    for asked in (None, "hello", "q7 t0", "q0 t8", "q-1 t0", "q0"):
        with pytest.raises(DataError, match=f"row 3 has {asked!r}"):
            case.case.subject.encode(Example(3, "w1 w2", -1, pair=asked))


@pytest.mark.parametrize("kind", ASKED_KINDS)
def test_a_case_follows_from_its_seed_alone(kind):
    one, same, other = (Case(kind, "hard", 10, seed) for seed in (7, 7, 8))
    assert one.subject.fingerprint() == same.subject.fingerprint() != other.subject.fingerprint()
    assert one.texts(4) == same.texts(9)[:4]
    assert one.texts(4) != other.texts(4)
