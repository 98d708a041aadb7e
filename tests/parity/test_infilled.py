"""Words replaced by a language model's, against plain loops over single texts."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
import transformers

import heedful
from heedful.checks import checks
from heedful.checks.faithfulness.infilling import replace_words
from heedful.core.batch import Encoded
from heedful.core.errors import ConfigError, ModelError
from heedful.core.rng import generator
from heedful.core.values import Example
from heedful.models.batch_context import BatchContext
from heedful.models.transformer.infiller import Infiller, InfillRequest
from support import measured_values, subjects
from support.masked_language_model import filler
from support.reference_removal import members, subject

SEED, SAMPLES, BINS = 3, 2, (0.2, 0.5)
TEXTS = {
    "bilstm": ("w1 w2 w3 w4 w5", "w7", "w9 good", "the film was w3"),
    "bert": ("unbelievable film was good", "unly", "good film", "the film is n't great"),
}
WAYS = ("deletion", "masking", "infilled")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return filler(tmp_path_factory.mktemp("filler"))


@pytest.fixture(scope="module")
def infiller(folder):
    return Infiller.load(folder)


def sitting_of(name, **more):
    one = subject(name)
    texts = [one.encode(Example(7 + n, text, 0)) for n, text in enumerate(TEXTS[name])]
    return BatchContext(one, one.batch(texts), seed=SEED, texts=texts, **more), texts


def check(folder, **settings):
    given = {"methods": (), "bins": BINS, "draws": 0, "steps": 2, "orders": 2, "infill": folder}
    given |= {"perturbations": 0}
    return checks.build("faithfulness", **given | {"samples": SAMPLES} | settings)


def rows_of(findings):
    return measured_values.columns(findings)


class Plain:
    """The language model asked for one text at a time, in plain numbers."""

    def __init__(self, folder):
        self.model = transformers.BertForMaskedLM.from_pretrained(folder).eval()
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        vocabulary = self.tokenizer.get_vocab()
        special = set(self.tokenizer.all_special_tokens)
        whole = {word: n for word, n in vocabulary.items() if not word.startswith("##")}
        del whole["n't"]  # it is in the vocabulary, but read as n ' t
        self.words = sorted((n, word) for word, n in whole.items() if word not in special)

    def pieces(self, word):
        return self.tokenizer.convert_tokens_to_ids(self.tokenizer.tokenize(word))

    def chances(self, ids):
        with torch.no_grad():
            return self.model(input_ids=torch.tensor([ids])).logits[0].double()

    def filled(self, words, gone, keys):
        """Each missing word by its own number: the first whose chances sum up beyond it."""
        ids, where = [1], {}  # [CLS]
        for place, word in enumerate(words):
            if place in gone:
                where[place] = len(ids)
                ids.append(self.tokenizer.mask_token_id)
            else:
                ids += self.pieces(word)
        logits, found = self.chances([*ids, 2]), {}
        for place, at in where.items():
            weights = [math.exp(float(logits[at, n])) for n, _ in self.words]
            total, below = sum(weights), 0.0
            for weight, (_, word) in zip(weights, self.words, strict=True):
                below += weight / total
                if keys[place] < below:
                    found[place] = word
                    break
        return found

    def surprise(self, words):
        ids, counted = [1], []
        for word in words:
            pieces = [self.tokenizer.mask_token_id] if word is None else self.pieces(word)
            counted += [] if word is None else range(len(ids), len(ids) + len(pieces))
            ids += pieces
        ids, losses = [*ids, 2], []
        for place in counted:
            hidden = [*ids]
            hidden[place] = self.tokenizer.mask_token_id
            losses.append(-float(self.chances(hidden)[place].log_softmax(-1)[ids[place]]))
        return sum(losses) / len(losses) if losses else math.nan


def p_of(one, text, new, target):
    """p of a class when some words are others, the text written anew."""
    words = [new.get(place, word) for place, word in enumerate(text.seen_words)]
    encoded = one.encode(Example(0, " ".join(words), 0, tokens=tuple(words)))
    with torch.no_grad():
        return float(one.forward(one.batch([encoded])).logits[0].double().softmax(-1)[target])


@pytest.mark.parametrize("name", ["bilstm", "bert"])
def test_losses_are_means_over_samples_of_texts_written_anew(name, folder):
    context, texts = sitting_of(name)
    one, plain = context.subject, Plain(folder)
    found = rows_of(check(folder)(context))
    for row, text in enumerate(texts):
        target, words = int(context.predicted[row]), members(text, "words")
        keys = generator(SEED, "infilled", text.content).random((SAMPLES, len(words)))
        weights = one.forward(one.batch([text])).attention[0].detach().double()
        order = np.argsort([-sum(float(weights[t]) for t in word) for word in words], kind="stable")
        whole = p_of(one, text, {}, target)
        lost, kept = [], []
        for share in BINS:
            size = max(1, math.ceil(round(share * len(words), 9)))
            for gone, losses in ((order[:size], lost), (order[size:], kept)):
                gone = set(gone.tolist())
                drawn = [plain.filled(text.seen_words, gone, each) for each in keys]
                left = np.mean([p_of(one, text, new, target) for new in drawn])
                losses.append(whole - left)
        mine = found["comprehensiveness[attention, infilled]"][row]
        assert mine == pytest.approx(np.mean(lost), abs=1e-6)
        mine = found["sufficiency[attention, infilled]"][row]
        assert mine == pytest.approx(np.mean(kept), abs=1e-6)
    assert (found["not_infilled"] == 0).all()
    rows = ("beyond_random[attention", "comprehensiveness[random", "flip[attention")
    assert {f"{one}, infilled]" for one in rows} <= set(found)


@pytest.mark.parametrize("name", ["bilstm", "bert"])
def test_perplexity_is_that_of_a_plain_loop(name, folder):
    context, texts = sitting_of(name)
    one, plain = context.subject, Plain(folder)
    found = rows_of(check(folder)(context))
    for row, text in enumerate(texts):
        words = members(text, "words")
        weights = one.forward(one.batch([text])).attention[0].detach().double()
        order = np.argsort([-sum(float(weights[t]) for t in word) for word in words], kind="stable")
        gone = set(order[: max(1, math.ceil(round(0.5 * len(words), 9)))].tolist())
        keys = generator(SEED, "infilled", text.content).random((SAMPLES, len(words)))[0]
        drawn = plain.filled(text.seen_words, gone, keys)
        read = [*enumerate(text.seen_words)]
        variants = {
            "whole": [word for _, word in read],
            "deletion": [word for n, word in read if n not in gone],
            "masking": [None if n in gone else word for n, word in read],
            "infilled": [drawn[n] if n in gone else word for n, word in read],
        }
        for way, left in variants.items():
            wanted = pytest.approx(plain.surprise(left), abs=1e-5, nan_ok=True)
            assert found[f"log_perplexity_{way}"][row] == wanted, way


def test_candidates_are_whole_words_and_no_signs_of_the_tokenizer(infiller, folder):
    numbers, written = infiller.candidates
    assert [*zip(numbers.tolist(), written, strict=True)] == Plain(folder).words
    assert not {"[MASK]", "[CLS]", "[UNK]", "n't"} & {*written}


def test_a_model_that_is_sure_gives_its_word_and_keys_choose_among_others(tmp_path, infiller):
    words, keys = ("the", "film", "was", "bad"), torch.rand(3, 4).double()
    sure = Infiller.load(filler(tmp_path / "sure", sure="good"))
    (found,) = sure.fill([InfillRequest(words, frozenset({1, 3}), keys)])
    assert found == [{1: "good", 3: "good"}] * 3
    draws = torch.rand(200, 4, generator=torch.Generator().manual_seed(0)).double()
    (found,) = infiller.fill([InfillRequest(words, frozenset({1}), draws)])
    assert len({one[1] for one in found}) > 5
    assert infiller.fill([InfillRequest(words, frozenset(), keys)]) == [[{}, {}, {}]]


def test_what_lies_beyond_the_model_is_not_infilled_and_counted(tmp_path):
    short = filler(tmp_path / "short", longest=5)  # three words between its signs
    context, _ = sitting_of("bilstm")
    found = rows_of(check(short)(context))
    share = found["not_infilled"]
    assert 0 < share[0] < 1  # five words, of which some are w1, spelt w ##1: two pieces
    assert share[1] == 0
    text = Encoded(0, 1, (2, 7, 8, 9, 3), (-1, 0, 0, 1, -1), ("ab", "c"), types=(0, 0, 0, 1, 1))
    full = replace_words(text, {0: (5,), 1: (6, 6)}, room=5)
    assert (full.ids, full.word, full.types) == (
        (2, 5, 6, 6, 3),
        (-1, 0, 1, 1, -1),
        (0, 0, 1, 1, 1),
    )
    tight = replace_words(text, {0: (5,), 1: (6, 6)}, room=4)
    assert (tight.ids, tight.word) == ((2, 5, 3), (-1, 0, -1))


def test_company_and_budget_never_matter(folder):
    one_check = check(folder)
    context, texts = sitting_of("bilstm")
    together = rows_of(one_check(context))
    for row, text in enumerate(texts):
        one = context.subject
        alone = BatchContext(one, one.batch([text]), seed=SEED, texts=[text], max_batch_tokens=9)
        for key, values in rows_of(one_check(alone)).items():
            wanted = pytest.approx(together[key][row], abs=1e-6, nan_ok=True)
            assert values[0] == wanted, key


def test_texts_that_came_without_words_say_so(folder):
    context, _ = sitting_of("bilstm")
    bare = replace(context, texts=(), cache={})
    findings = check(folder)(bare)
    rows = rows_of(findings)
    assert not any("infilled" in name for name in rows)
    for name in ("not_infilled", "off_distribution_infilled", "log_perplexity_whole"):
        assert "came without their words" in measured_values.missing(findings)[name]
    known = {*map(measured_values.plain, rows), *measured_values.missing(findings)}
    listed = measured_values.measures(checks.spec("faithfulness"))
    assert {one for one in listed if "infilled" in one or "perplexity" in one} <= known <= listed


def test_an_audit_infills_and_keeps_its_figures(folder):
    words = subjects.WORDS
    draw = np.random.default_rng(1)
    rows = [
        {"text": " ".join(draw.choice(words, draw.integers(2, 6))), "label": f"class{n % 2}"}
        for n in range(22)
    ]
    settings = {"methods": [], "draws": 0, "steps": 1, "orders": 1, "infill": folder, "samples": 1}
    run = heedful.audit(
        subjects.subject(), rows, checks=["faithfulness"], settings={"faithfulness": settings}
    )
    found = run.verdict.checks["faithfulness"]
    for way in ("whole", *WAYS):
        assert found.estimates[f"off_distribution_{way}"].n == 22
        assert found.estimates[f"log_perplexity_{way}"].n > 0
    assert "infilled" in found.why
    frame = run.to_dataframe()
    chosen = (frame.measure == "beyond_random") & (frame.method == "attention")
    assert len(frame[chosen & (frame.setting == WAYS[2])]) == 22


def test_what_is_no_language_model_is_refused(tmp_path, folder):
    with pytest.raises(ConfigError, match="infill must be the folder of a masked language model"):
        check(str(tmp_path / "nothing"))
    with pytest.raises(ConfigError, match="samples must be a whole number of at least 1"):
        check(folder, samples=0)
    bare = transformers.BertModel(transformers.BertForMaskedLM.from_pretrained(folder).config)
    bare.save_pretrained(tmp_path / "bare")
    transformers.AutoTokenizer.from_pretrained(folder).save_pretrained(tmp_path / "bare")
    with pytest.raises(ModelError, match="not a masked language model, or lacks its head"):
        Infiller.load(str(tmp_path / "bare"))
