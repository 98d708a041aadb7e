"""The answers of a calibration as a page: where the rule before failed, and the rule now.

python -m benchmarks.calibration --seed N --out FILE.json
python -m benchmarks.calibration_page FILE.json > docs/verdict-failures.md
"""

import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.calibration import NAMES, CaseAnswers, describe_figures, with_tau_answers

ANSWERS = {1: "faithful", -1: "unfaithful", None: "mixed"}
RULES = ("heedful", "before")


def read_answers(path: Path) -> list[CaseAnswers]:
    """The answers that a calibration kept."""
    found = [CaseAnswers(**one) for one in json.loads(path.read_text("utf-8"))]
    return with_tau_answers(found)


def count_marks(found: Sequence[CaseAnswers], rule: str) -> str:
    """Right / wrong / undecided."""
    counts = Counter(one.mark(rule) for one in found)
    return " / ".join(str(counts[mark]) for mark in (1, -1, 0))


def lines(found: Sequence[CaseAnswers]) -> Iterator[str]:
    """The page."""
    yield INTRODUCTION
    yield "| family | kinds | cases | rule before | rule now |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    families: dict[str, list[CaseAnswers]] = defaultdict(list)
    for one in found:
        families[one.family].append(one)
    for family, some in families.items():
        kinds = len({one.kind for one in some})
        cells = " | ".join(count_marks(some, rule) for rule in reversed(RULES))
        yield f"| {family} | {kinds} | {len(some)} | {cells} |"
    yield "\n## All rules\n"
    yield "| rule | figures |\n| --- | --- |"
    for rule, name in NAMES.items():
        yield f"| {name} | {describe_figures(found, rule)} |"
    yield "\n## By architecture and length\n"
    yield "| subjects, texts | figures of the verdict |\n| --- | --- |"
    for label, part in (("", "architecture"), (" words", "length")):
        for value in sorted({getattr(one, part) for one in found}):
            some = [one for one in found if getattr(one, part) == value]
            yield f"| {value}{label} | {describe_figures(some, 'heedful')} |"
    yield KINDS
    yield "| family | kind | truth | rule before | rule now |\n| --- | --- | --- | ---: | ---: |"
    for family, some in families.items():
        for kind in dict.fromkeys(one.kind for one in some):
            mine = [one for one in some if one.kind == kind]
            cells = " | ".join(count_marks(mine, rule) for rule in reversed(RULES))
            yield f"| {family} | {kind} | {ANSWERS[mine[0].explains]} | {cells} |"
    yield "\n## Cases that are wrong or undecided\n"
    yield "| kind | words | truth | places | why |\n| --- | ---: | --- | --- | --- |"
    for one in found:
        if one.mark("heedful") < 1:
            places = ", ".join(f"{name} {value}" for name, value in one.places.items())
            why = " ".join(one.why[claim] for claim in one.why if one.said["heedful"][claim] < 1)
            truth = ANSWERS[one.explains]
            yield f"| {one.kind} | {one.length} | {truth} | {places} | {why.replace('|', '/')} |"


INTRODUCTION = """# Where single deletion fails

The rule before asked whether attention agrees with deleting one word at a time, as a place
between shuffled attention and the gradient. That fails in ways that neither intervals nor other
analysis choices reveal:

- **Redundancy and saturation.** Where several words each suffice, deleting one changes nothing.
  Leave-one-out then ranks noise: honest attention is convicted, and a decoy can be acquitted.
- **Irrelevant tails.** τ over all pairs of 20 words gives 171 of 190 pairs to words whose effects
  are noise, if two words matter.
- **Interaction.** With negation, products or XOR, the effects of single words cancel.
- **Mixtures.** Attention can be faithful on some texts and inert on others; one answer for all is
  wrong for one part.
- **Inert, but in order.** Weights that go with what matters and cause nothing were called
  faithful.
- **A weak reference.** The degree divided by the gradient's agreement; where that is poor it
  means nothing.

The rule now rests on [influence](verdict.md#the-yardstick-influence): words alone and together.
Below are both rules on models whose truth is known by sets of words ([how](planted.md)), as right
/ wrong / undecided cases. A mixed kind is right where the parts of the texts are named, and wrong
where it is answered.

## By family
"""
KINDS = """
Nothing in the rule is fitted to data, so leaving a family out while fitting would be vacuous. The
kinds were written and proved by people who had not seen the rule, and committed before it was run
on them.

- The **first run** (seed 101, 114 cases), with the rule as it had been drafted, was right in 98.0 %
  of 101 decided cases (99 of 101 kinds) and left 11 of 104 unmixed cases undecided. *Used* was
  refuted for two saturated kinds whose influential words all say the same, and controls failed
  where many words have equal influence.
- After it three things were changed by argument: *used* is refuted only where no weights on any
  words matter; the largest influence is taken without noise; and the pilot draws orders until the
  controls would hold. A second run (seed 303, 228 cases) was right in 98.6 % of 216, wrong on three
  cases of two mixed kinds that no split at hand divides.
- For such mixtures the test of the dispersion of `order` between texts was added. A run after it,
  on new draws (seed 404), was right in 100 % of 218.
- Then a family was written for the purpose by somebody who had not seen the rule (`held-out`, 14
  kinds; seed 505, 42 cases): right in 100 % of 39 decided cases (13 of 13 kinds [0.75, 1.00]), 0 of
  36 unmixed cases undecided; the rule before 80.5 % of 41.
- A review of the code found that pairs of orders which mirror each other bias influence a little,
  that long texts ranked more or less well were taken to answer differently, and that parts of the
  texts were not tested where texts are drawn by document. These were mended by argument.
- **After the last change** a second family was written by somebody who had not seen the rule
  (`unseen`, 42 kinds; seed 707, 84 cases): right in 100 % of 75 decided cases (38 of 38 kinds
  [0.91, 1.00]), 4 of 76 unmixed cases undecided; the rule before 81.5 % of 81. Nothing was changed
  after it. No kind that shaped the rule takes part in this figure.
- The figures above are of all kinds on new draws (seed 808).

## By kind
"""

if __name__ == "__main__":
    for line in lines(read_answers(Path(sys.argv[1]))):
        print(line)
