"""A real decoder under audit: it writes its known sentence, and its next token is explained."""

import pytest
import torch

import heedful
from support import stories260k

pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not stories260k.FOLDER.exists(), reason="stories260k is not here"),
]
KNOWN = (
    "Once upon a time, there was a little girl named Lily. She loved to play outside in the park."
)
TEXTS = [
    "Once upon a time, there was a little",
    "Lily and her mom went to the",
    "One day, Tim saw a big red ball in the",
    "The dog was very happy. He wanted to",
    "She said, “I want to",
    "Mom said it was time to",
]


@pytest.fixture(scope="module")
def subject():
    return heedful.load(stories260k.model().double(), stories260k.tokenizer())


def test_it_writes_its_known_sentence():
    model, tokenizer = stories260k.model(), stories260k.tokenizer()
    ids = [1]
    while len(ids) < 40:
        with torch.no_grad():
            ids.append(int(model(torch.tensor([ids])).logits[0, -1].argmax()))
    assert tokenizer.decode(ids[1:]).strip().startswith(KNOWN)
    assert tokenizer(KNOWN)["input_ids"] == ids[: len(tokenizer(KNOWN)["input_ids"])]


def test_its_attention_is_reached_exactly(subject):
    assert subject.attention_path == "interface"
    assert subject.parity < 1e-5
    assert str(subject.scope) == "layer 4, mean over heads, last position"


def test_the_next_token_is_audited(subject, tmp_path):
    rows = [{"text": text} for text in TEXTS]
    run = heedful.audit(
        subject, rows, out=tmp_path / "run", settings={"adversarial": {"steps": 20}}
    )
    found = run.verdict.checks
    assert found["agreement"].estimates["tau_leave_one_out"].n == len(TEXTS)
    assert found["permutation"].estimates["leverage"].value > 0.05
    frame = run.to_dataframe()
    assert frame["label"].isna().all()
    (next_token,) = set(frame[frame["instance"] == 0]["predicted"])
    assert next_token == " g"  # of "girl", in a vocabulary of 512


def test_answers_make_two_classes_of_a_vocabulary():
    two = heedful.load(
        stories260k.model().double(), stories260k.tokenizer(), answers=("mom", "time")
    )
    assert two.labels == ("mom", "time")
    found = heedful.explain(two, TEXTS[0], methods=["attention", "leave_one_out"])
    assert found.record.target in two.labels
    assert len(found.record.tokens) == len(found.record.methods["attention"].scores)
