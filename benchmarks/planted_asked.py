"""The part of the page on planted subjects that read a question with each text."""

from heedful.planted import ASKED_KINDS, Case
from heedful.planted.closed_form.question_kinds import MIN_SLOPE
from heedful.planted.texts import QUESTIONS

WORDS = {True: "yes", False: "no", None: "·"}
WHY = {  # what it is for each question; why the truth holds
    "asked-peaked": (
        "honest-peaked",
        "its cue has ≥ 8/9 of the weight; the same output needs ≥ 0.62 of it there",
    ),
    "asked-graded": ("honest-graded", "weights are in proportion to what words say"),
    "asked-hidden": ("hidden", "the cue has the largest effect and the lowest weight"),
    "asked-anti": ("anti", "effects go with x, weights with 1/x: τ below −0.5"),
    "asked-running": ("running", "deletion takes away what a word adds; weights follow positions"),
    "asked-inert-random": ("inert-random", "the output is the same under any attention, exactly"),
    "asked-inert-proportional": ("inert-proportional", "the same; weights are in order"),
    "asked-leaky": ("leaky", "no attention moves the output by 0.02"),
    "asked-alone": (
        "the tone of the question decides, as a hypothesis can without its premise",
        "attention feeds 0.01 to 0.04 log-odds: no attention moves the output by 0.02",
    ),
}


def section() -> str:
    """The section as Markdown."""
    rows = []
    for kind in ASKED_KINDS:
        truth = [WORDS[one] for one in Case(kind, "easy", 10, 0).truth.values()]
        rows.append(f"| {' | '.join((kind, *truth, *WHY[kind]))} |")
    return TEXT.format(questions=QUESTIONS, slope=MIN_SLOPE, table="\n".join(rows))


TEXT = """
### Subjects with a question

`ASKED_KINDS` read a question with each text, as models for question answering and text pairs do
([queries](queries.md)): rows of paragraph, question and label. For each of {questions} questions
such a subject is one of the kinds above, drawn on its own; a word that decides one question means
little to another. The output is that of the papers' model, W tanh(W_p c + W_q q): what attention
gathers, z, becomes S·tanh(z/S), the log-odds of the question's two answers; the four answers to
other questions share ½ % at most. S is so wide that the slope stays above {slope:g}.

```python
from heedful.planted import ASKED_KINDS, cases

for case in cases(seed=0, count=9, kinds=ASKED_KINDS):
    print(case.kind, dict(case.truth), case.texts(1)[0]["question"])
```

| kind | used | ranks | exclusive | for each question | why |
| --- | --- | --- | --- | --- | --- |
{table}

[`test_planted_question_truth.py`](../tests/unit/models/test_planted_question_truth.py)
proves it: that each question's part is the kind without questions, how little is bent, and each
claim by trying all words. No trained model with a question is among them.
"""
