"""The page's section on the planted benchmark: its kinds, their truths, and why they hold."""

from benchmarks import planted_asked
from heedful.planted import KINDS, PLANTED_VERSION, TRAINED_KINDS, TRAINED_VERSION, Case
from heedful.planted.trained.bounds import BOUNDS
from heedful.planted.trained.case import MAX_ATTEMPTS, PROOF_TEXTS

WORDS = {True: "yes", False: "no", None: "·"}
WHY = {  # how it is built; what grows harder; why the truth holds, and by which margin
    "honest-peaked": (
        "one decisive word says ±2 and has ≥ 8/9 of the weight",
        "weight of the others, and what they say (≤ 0.3)",
        "weights > 1.42 times apart are in the order of deletion; the same output needs ≥ 0.64 of "
        "the weight on the same word",
    ),
    "honest-graded": (
        "words say ±x, weights in proportion to x; praise and blame nearly balance",
        "how far from balance, \\|z\\| ≤ 0.15 to 0.4 of the scale",
        "words whose x differ by more than \\|z\\| are in the order of deletion: ≥ 78 % of pairs",
    ),
    "compiled-copy": (
        "a BERT whose head copies what honest-peaked words say to [CLS]",
        "as honest-peaked",
        "the logit grows with what is copied, and has no other source",
    ),
    "compiled-graded": (
        "a GPT-2 whose head carries what honest-graded words say to the last word",
        "as honest-graded",
        "the logit is what is carried, and has no other source",
    ),
    "hidden": (
        "the decisive word's value is in its neighbours' states; they have ≥ 10/11 of the weight",
        "how far its own weight is below all others (e³ to e^½)",
        "largest effect (≥ 1.8, others < 0.45), lowest weight; what else words add is unrelated",
    ),
    "anti": (
        "weights in proportion to 1/x, sayings to ±x²",
        "contrast of weights, e² to e",
        "effects go with x, weights with 1/x: τ below −0.5",
    ),
    "running": (
        "states hold the sum up to their word, attention is on the last ones",
        "how fast weights fall from the end (e³ to e^0.8)",
        "deletion takes away what a word adds, wherever it is; weights follow positions",
    ),
    "frozen": (
        "a classifier of the 2019 papers with equal weights",
        "decisive word 24, 12 or 6 times as loud as others",
        "equal weights order nothing; the decisive word's effect is ≥ 4/3 of any other's",
    ),
    "inert-random": (
        "every state says the same sum; scores unrelated",
        "how decided attention looks (deviation 0.5 to 3)",
        "the output is the same under any attention, exactly",
    ),
    "inert-proportional": (
        "the same; weights in proportion to what a word adds, times a noise",
        "the noise, a factor of up to e^0.3",
        "the output is the same under any attention; weights > e^0.6 apart are in order",
    ),
    "leaky": (
        "every state holds the answer already, some louder; scores unrelated",
        "loudness varies by 0 to 4 %",
        "no attention moves the probability by 0.02",
    ),
    "routed": (
        "a path around attention decides, attention adds a noise; scores unrelated",
        "the noise, 0.01 to 0.04 log-odds",
        "no attention moves the probability by more than 0.02",
    ),
    "compiled-around": (
        "a GPT-2: the first layer and the residual stream carry the answer past the last layer",
        "what the last layer feeds, 0.01 to 0.04 log-odds",
        "no row of the last layer moves the probability by more than 0.02; its scores are "
        "unrelated",
    ),
    "compiled-early": (
        "a BERT: the first layer copies the decisive word to [CLS], the last is inert",
        "as compiled-around",
        "as compiled-around",
    ),
    "redundant": (
        "honest-peaked with the decisive word twice",
        "as honest-peaked",
        "reported, not scored: deletion and contribution part",
    ),
    "saturated": (
        "honest-peaked with a word that says ±8 to ±30",
        "how far the output is saturated",
        "reported, not scored: log-odds and probability part",
    ),
}


WHY_TRAINED = {  # how it is trained; why the truth follows from task and architecture
    "trained-peaked": (
        "word-wise; the task, and attention on the decisive word; others to say nothing",
        "no other word says anything; what deleting them moves goes with their weight",
    ),
    "trained-graded": (
        "word-wise; to say Σx·s / Σx of words that say s = ±x; attention is left to the task",
        "only weights in proportion to x solve it; praise and blame nearly balance, so deletion "
        "goes with x",
    ),
    "trained-beside": (
        "CNN; states next to the decisive word to hold the answer, others nothing; attention on "
        "them, off that word",
        "away from the neighbours the output is even; the decisive word has next to no weight",
    ),
    "trained-away": (
        "BiLSTM; the task, and no weight on the decisive word (the penalty of Pruthi et al.)",
        "the decisive word has next to no weight; how far states carry the answer is not known",
    ),
    "trained-leaky": (
        "BiLSTM; every state to give the answer, all alike; attention by a list of random scores",
        "all states say the same; the list was drawn without looking at what words decide",
    ),
    "trained-late": (
        "the same without the list; then attention alone, by what deleting each word moves",
        "all states say the same; of the order only the decisive word is learnt: not scored",
    ),
}


def section() -> str:
    """The section as Markdown."""
    rows = []
    for kind in KINDS:
        truth = [WORDS[one] for one in Case(kind, "easy", 10, 0).truth.values()]
        rows.append(f"| {' | '.join((kind, *truth, *WHY[kind]))} |")
    text = TEXT.format(version=PLANTED_VERSION, table="\n".join(rows))
    return text + planted_asked.section() + _trained()


def _trained() -> str:
    """The part on trained cases: kinds, truths, and the bounds of their proofs."""
    rows = []
    for name, kind in TRAINED_KINDS.items():
        truth = [WORDS[one] for one in kind.truth.values()]
        rows.append(f"| {' | '.join((name, *truth, *WHY_TRAINED[name]))} |")
    proofs = [
        f"| {claim} | {WORDS[truth]} | {bound.what} | {'≤≥'[bound.above]} {bound.line:g} |"
        for (claim, truth), bounds in BOUNDS.items()
        for bound in bounds
    ]
    return TRAINED_TEXT.format(
        version=TRAINED_VERSION,
        table="\n".join(rows),
        proofs="\n".join(proofs),
        texts=PROOF_TEXTS,
        attempts=MAX_ATTEMPTS,
    )


TEXT = """
## The benchmark

`heedful.planted` draws such subjects from a seed: kinds × difficulty (easy, middle, hard) × length
(10, 20, 60, 200 words on average). It is public, so that other libraries can be scored on it too,
and frozen: a change of a subject, a text or a truth raises `PLANTED_VERSION` (now {version}).
Truths were written down before any rule was tried on them.

```python
import heedful

for case in heedful.planted.cases(seed=0, count=28):  # or kinds=["hidden", "leaky"]
    rows = case.texts(100)  # text and label, the subject's own output
    print(case.kind, case.difficulty, case.length, dict(case.truth))
    run = heedful.audit(case.subject, rows)
```

To score a method of another library, compare its answer with `case.truth`. Inputs for the model are
`case.subject.encode(heedful.planted.row_to_example(row, index))`; in kinds named "compiled-…",
`case.subject.model` is a plain Transformers model.

*used*: the output depends on the attention. *ranks*: attention orders words as deleting them does.
*exclusive*: no distant attention gives the same output (distant: more than half of the weight
elsewhere; same: within 0.05 in probability). "·" is reported, not scored.

| kind | used | ranks | exclusive | how it is built | what grows harder | why, and by which margin |
| --- | --- | --- | --- | --- | --- | --- |
{table}

Where attention is used, shuffling its weights moves the output of the median text by more than
0.05, and some attention moves it by more than 0.2. "Unrelated" means drawn without looking: over
400 words τ is 0 ± 0.033. The margins are those of the hardest level.
[`test_planted_truth.py`](../tests/unit/models/test_planted_truth.py) proves them for every kind,
difficulty and length, by closed form or by trying all; the docstrings in
[`planted/closed_form/`](../src/heedful/planted/closed_form/) say why in full.
"""
TRAINED_TEXT = """
### Trained subjects

`trained_cases` (version {version}) draws subjects that are trained instead of built by hand:
classifiers of the 2019 papers, 16 wide, on texts of 10 or 20 words, each in a second or two.

```python
from heedful.planted import trained_cases

for case in trained_cases(seed=0, count=6):  # or kinds=["trained-leaky"]
    print(case.kind, case.length, dict(case.truth), case.redrawn)
```

| kind | used | ranks | exclusive | how it is trained | why |
| --- | --- | --- | --- | --- | --- |
{table}

The truth follows from task and architecture. Each training is tested for it, on {texts} texts of
its own which no audit sees, and accepted only if it keeps these bounds. They use none of the
checks, and were set before any rule was tried on a trained subject. A training that breaks one is
repeated with other draws, {attempts} times at most, and `redrawn` counts these.

| claim | truth | figure | bound |
| --- | --- | --- | ---: |
{proofs}

Effect of any attention: the largest change of the probability, which is reached with all weight on
one word, because log-odds are linear in the weights. Deletions: every text without each of its
words. Weight elsewhere: an upper bound in closed form, from the weight that the top word must keep
for the output to stay within 0.05. Every fourth training text has its decisive word removed, so
that networks learn an output for texts without it. The same seed gives the same weights, on the
same machine and version of torch.

What the benchmark does not hold: trained transformers, trained models with a question, and claims
that need retraining (*needed*, *robust*).
"""
