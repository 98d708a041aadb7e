"""The page's section on the planted benchmark: its kinds, their truths, and why they hold."""

from heedful.models.planting import KINDS, PLANTED_VERSION, Case

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
        "the decisive word is told to its neighbours' states; they have ≥ 10/11 of the weight",
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
        "a path beside attention decides, attention feeds a noise; scores unrelated",
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
        "a BERT: the first layer copies the decisive word to [CLS], the last looks on",
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


def section() -> str:
    """The section as Markdown."""
    rows = []
    for kind in KINDS:
        truth = [WORDS[one] for one in Case(kind, "easy", 10, 0).truth.values()]
        rows.append(f"| {' | '.join((kind, *truth, *WHY[kind]))} |")
    return TEXT.format(version=PLANTED_VERSION, table="\n".join(rows))


TEXT = """
## The benchmark

`heedful.models.planting` draws such subjects anew from a seed: kinds × difficulty (easy, middle,
hard) × length (10, 20, 60, 200 words on average). It is public, so that other libraries can be
scored on it too, and frozen: where a subject, a text or a truth would change, `PLANTED_VERSION`
(now {version}) is raised. Truths were written down before any rule was held against them.

```python
import heedful
from heedful.models.planting import cases

for case in cases(seed=0, count=28):  # or kinds=["hidden", "leaky"]
    rows = case.texts(100)  # text and label, the subject's own output
    print(case.kind, case.difficulty, case.length, dict(case.truth))
    run = heedful.audit(case.subject, rows)
```

*used*: the output depends on the attention. *ranks*: attention orders words as deleting them does.
*exclusive*: no distant attention gives the same output (distant: more than half of the weight
elsewhere; same: within 0.05 in probability). "·" is reported, not scored.

| kind | used | ranks | exclusive | how it is built | what grows harder | why, and by which margin |
| --- | --- | --- | --- | --- | --- | --- |
{table}

Where attention is used, shuffling its weights moves the output of the median text by more than
0.05, and some attention moves it by more than 0.2. "Unrelated" means drawn without looking: over
400 words τ is 0 ± 0.033. The margins are those of the hardest level.
[`test_planting_truth.py`](../tests/unit/models/test_planting_truth.py) proves them for every kind,
difficulty and length, by closed form or by trying all; the docstrings in
[`models/planting/`](../src/heedful/models/planting/) say why in full.

What it does not hold: trained subjects, and claims that need training (*needed*, *robust*).
"""
