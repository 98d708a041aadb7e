"""The shipped table of powers as a page.

python -m benchmarks.power_page > docs/power.md
"""

from collections.abc import Iterator

from heedful.checks import checks
from heedful.checks.influence.titration import titration_table
from heedful.core.records import CLAIMS
from heedful.pipeline.verdict.check_power import (
    ANY,
    UNKNOWN,
    AuditSetting,
    CheckPower,
    powers_for,
    read_bundled_powers,
)

LENGTHS = (10, 20, 60, 200)
ARCHITECTURES = {
    "recurrent": "Recurrent subjects",
    "recurrent with a question": "Recurrent subjects with a question",
    "transformer": "Transformer subjects",
}
MOST = 10**6  # texts: as many as were measured


def main() -> None:
    """Print the page."""
    print(INTRODUCTION.format(**read_bundled_powers()))
    print("\n## Any model\n")
    for line in _table(UNKNOWN):
        print(line)
    for architecture, title in ARCHITECTURES.items():
        print(f"\n## {title}\n")
        for line in _table(architecture):
            print(line)
    print(CLOSING.format(titration="\n".join(_titration())), end="")


def _titration() -> Iterator[str]:
    table = titration_table()
    yield f"| {' | '.join(map(str, table.head))} |"
    yield f"| --- |{' --- |' * (len(table.head) - 1)}"
    yield from (f"| {' | '.join(map(str, row))} |" for row in table.rows)


def _table(architecture: str) -> Iterator[str]:
    yield "| claim | check | words | texts | ROC-AUC | misses | false alarms | undecided | vote |"
    yield "| --- | --- | ---: | ---: | --- | ---: | ---: | ---: | ---: |"
    yield from _lines(architecture)


def _lines(architecture: str) -> Iterator[str]:
    pairs = [
        (claim, spec.name)
        for claim in CLAIMS
        for spec in checks.specs()
        for vote in spec.votes
        if vote.claim == claim
    ]
    for claim, check in pairs:
        seen: set[str] = set()
        for words in LENGTHS:
            found = powers_for(AuditSetting(architecture, words, MOST)).of(claim, check)
            general = found is not None and found.like.startswith(ANY)
            if (
                found is not None
                and found.like not in seen
                and general == (architecture == UNKNOWN)
            ):
                seen.add(found.like)
                yield _line(found)


def _line(found: CheckPower) -> str:
    texts, _, words = found.like.partition(", ")[2].partition(" texts of about ")
    auc = "–" if found.auc is None else f"{found.auc}"
    shares = (found.miss, found.false_alarm, found.undecided)
    told = " | ".join(f"{one.value:.0%} [{one.low:.0%}, {one.high:.0%}]" for one in shares)
    vote = f"{found.weight:.2f}" if found.weight else "none"
    number = texts.removesuffix(" texts")
    return (
        f"| {found.claim} | `{found.check}` | {words.removesuffix(' words') or 'any'} | {number} | "
        f"{auc} | {told} | {vote} |"
    )


INTRODUCTION = """# How often each check is right

Measured on models whose truth is known, and shipped with the package
(`pipeline/verdict/power.json`). The same figures stand beside each check in every report.

*Misses*: the claim holds, the check refutes it. *False alarms*: it does not hold, the check
supports it. *Vote*: what its answer weighs, the lower end of the skill (1 − misses − false alarms);
"none" below ½. See [the verdict](verdict.md).

`influence` is measured over all [kinds known by sets of words](planted.md#kinds-by-sets-of-words)
together, whatever the architecture and the length of texts. Its shares count kinds among the
decided, a kind being wrong if any of its cases is, with exact intervals (Clopper & Pearson). The
other checks are measured on the older kinds (version {planted}, seed {seed}), apart for each
architecture and length, with intervals over kinds from resampling, no narrower than the number of
cases allows; shown are the rows with the most texts."""
CLOSING = """
## The whole verdict, tried

`make calibration SEED=n` audits two cases of each of 170 kinds, drawn anew, 120 texts each (40 of
texts of more than 60 words), and holds the answer against the truth. Seed 808, 2026-11-19, 15 CPU
minutes:

| rule | right of those decided | kinds right of those decided | undecided of 308 unmixed |
| --- | ---: | ---: | ---: |
| the verdict | 100.0 % of 320 | 163 of 163 [0.98, 1.00] | 10 |
| the rule before: single deletion | 86.3 % of 315 | 140 of 166 [0.78, 0.90] | 14 |
| raw τ, its line drawn on the other families | 69.4 % of 340 | 109 of 170 [0.56, 0.71] | 0 |
| always faithful | 37.1 % of 340 | 63 of 170 [0.30, 0.45] | 0 |
| always undecided | – | – | 308 |

Nothing is fitted, so leaving a family out while fitting would be vacuous. The
[first run](verdict-failures.md#all-rules), before the rule had seen any kind, was right in 98.0 %
of 101 decided. On the 42 kinds that were written after the last change of the rule it was right in
100 % of 75 decided cases (38 of 38 kinds [0.91, 1.00]): the figure to hold it to. The votes above
rest on all kinds, also on those whose errors changed the rule.
[Every kind](verdict-failures.md#by-kind) has its own line.

## Titration: known doses on real models

No truth is planted in a real model, but known doses of it can be given. `python -m
benchmarks.titration MODEL DATA` replaces attention by the ranking of an independent estimate of
influence, mixed with noise; reverses it; and lets a decoy put the least influential fifth of the
words first. Answers and `order`:

{titration}

Every place falls with the dose on every model: from the first dose to the last certainly, and from
none to the next does it rise above the interval. The pure estimate is below 1, since it is as noisy
as the yardstick itself. The same table stands on the page of every audit.

## What this settles

- **Instance-level adversarial attention does not tell honest attention from inert.** The published
  argument takes a distant attention with the same output as a sign that attention does not matter.
  Of the planted models that use their attention more than half have such another: where weights
  are graded, or states hold sums, others give the same output. It has no vote on *used* or *ranks*.
  On the claim it is about, *exclusive*, it is right.
- **Agreement with single deletion** is right where words act one by one, and wrong where they are
  redundant, saturate or act together ([figures](verdict-failures.md)).
- **Erasure** by the fractions of Serrano & Smith, and **comprehensiveness** as a place, are not to
  be trusted with *ranks*: attention has no sign, and in a text where praise and blame balance its
  first words are as often against the class as for it.
- Rows of any length but those of `influence` come from small trained models
  (`benchmarks/power_trained.py`), few of them: *needed* and *robust* rest on at most five kinds.

## The intervals, tried

`python -m benchmarks.intervals` simulates 2 000 audits each, drawn from populations that are known.
Nominal 95 %. By formula, with fewer than 100 texts or documents:

| audits of | right in | without ids |
| --- | ---: | ---: |
| 40 texts, normal | 94.2 % | |
| 40 texts, each 1–5 times, normal | 95.2 % | 68 % |
| 40 texts, lognormal, σ = 0.5 and 0.75 | 95.2, 94.2 % | |
| 30 documents of 5–20 texts (correlation 0.3), mean and share | 95.7, 94.8 % | 63 % (mean) |
| 40 texts, ratio of sums; each 1–5 times | 94.2, 94.5 % | |
| 40 texts, lognormal, σ = 1.5 | 88.8 %: too few for so long a tail | |

"Without ids" is what the interval of the mean would hold if copies, or texts of one document, were
taken as independent. Expanded percentiles, in use before, held 92 % for σ = 0.75 and 82 % for
σ = 1.5.

Of two planted models, 2 000 texts each, in audits of 100 texts:

| interval of | holds the population's figure |
| --- | ---: |
| means (τ, TVD, leverage, fractions to flip; 12 rows) | 93.3 to 96.2 % |
| shares of texts (top word, flips; 3 rows) | 94.4 to 95.5 % |
| the degree (2 rows) | 94.8 and 95.0 % |
| a gain over 5 seeds a side, seeds and texts drawn anew | 99.4 %: cautious by design |

Each is known to about 1 %. Of orders that are random themselves "beyond random" was said, at the
level 5 %, in 5.5 % [4.5, 6.6] of the audits, of any of four methods after correction in 3.4 %
[2.6, 4.2]. Plain percentiles, which were in use before this was measured, held 91.7 to 95.6 %.
"""

if __name__ == "__main__":
    main()
