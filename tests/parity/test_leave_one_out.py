"""Short cuts of leave-one-out against running every shortened text on its own."""

from dataclasses import replace

import pytest
import torch
from torch.testing import assert_close as close

from heedful.core.batch import collate
from heedful.core.errors import NotApplicable
from heedful.core.values import Example
from heedful.models.batch_context import BatchContext
from support import reference_removal, subjects

ENCODERS = ("bilstm", "cnn", "average", "mlp")


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("attention", ["additive", "dot", "uniform"])
@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("budget", [1, 60, 100_000])
def test_equals_encoding_each_shortened_text_alone(encoder, attention, classes, budget):
    subject = subjects.subject(encoder, attention, classes=classes)
    texts = [" ".join(subjects.WORDS[k : k + n]) for k, n in ((0, 9), (3, 1), (5, 13), (2, 4))]
    batch = collate([subject.encode(Example(i, text, 0)) for i, text in enumerate(texts)])
    found = subject.without_each(batch, max_batch_tokens=budget)
    for row, text in enumerate(texts):
        words = text.split()
        for position in range(len(words)):
            shorter = " ".join(words[:position] + words[position + 1 :])
            alone = collate([subject.encode(Example(0, shorter, 0))])
            want = subject.forward(alone).logits[0]
            torch.testing.assert_close(found[row, position + 1], want, atol=1e-12, rtol=1e-12)
    assert not found[~batch.mask].any()


def shortened(text, places):
    """The text without the tokens at these places."""

    def kept(numbers):
        return tuple(one for t, one in enumerate(numbers) if t not in places)

    types = None if text.types is None else kept(text.types)
    return replace(text, ids=kept(text.ids), word=kept(text.word), types=types)


def lost(one, text, places, target, of):
    """How much the value falls without these tokens, each text alone; or how far outputs lie."""
    with torch.no_grad():
        before, after = (
            one.forward(one.batch([some])).logits[0] for some in (text, shortened(text, places))
        )
    if of == "output":
        pairs = zip(before.softmax(-1).tolist(), after.softmax(-1).tolist(), strict=True)
        return 0.5 * sum(abs(a - b) for a, b in pairs)
    return reference_removal.value(before, target, of) - reference_removal.value(after, target, of)


@pytest.mark.parametrize("name", ["bilstm", "cnn", "bert", "xlnet", "gpt2"])
@pytest.mark.parametrize("players", reference_removal.PLAYERS)
def test_equals_a_loop_over_texts_without_one_player(name, players):
    context, target = reference_removal.sitting_of(name, max_batch_tokens=40)
    texts = reference_removal.texts_of(name)
    if name == "gpt2":  # the second text is one word, and nothing else is there to read
        texts = [text for text in texts if players == "tokens" or len(text.words) > 1]
        context = BatchContext(context.subject, context.subject.batch(texts))
        target = context.predicted
    for of in (*reference_removal.OF, "output"):
        found = reference_removal.explained(
            "leave_one_out", context, target, of=of, players=players
        )
        assert max(float(scores.abs().max()) for scores in found) > 1e-3
        for row, text in enumerate(texts):
            parties = reference_removal.members(text, players)
            want = [lost(context.subject, text, some, int(target[row]), of) for some in parties]
            close(
                found[row], reference_removal.on_tokens(text, players, want), atol=1e-10, rtol=1e-9
            )


def test_words_of_one_token_are_tokens():
    context, target = reference_removal.sitting_of("bilstm")
    tokens = reference_removal.explained("leave_one_out", context, target)
    words = reference_removal.explained("leave_one_out", context, target, players="words")
    for one, other in zip(tokens, words, strict=True):
        assert torch.equal(one, other)


def test_a_text_that_deletion_would_empty_is_refused():
    context, target = reference_removal.sitting_of("gpt2")
    with pytest.raises(NotApplicable, match=r"only word, text 8 leaves nothing for gpt2 to read"):
        reference_removal.explained("leave_one_out", context, target, players="words")


def test_only_a_distance_has_no_sign():
    assert not reference_removal.methods.build("leave_one_out", of="output").signed
    assert all(
        reference_removal.methods.build("leave_one_out", of=of).signed
        for of in reference_removal.OF
    )
