"""Is the verdict right? Planted cases drawn anew, each kind judged by what was learned from others.

python -m benchmarks.calibration --seed N [--cases 208] [--asked 108] [--trained 18]

Cases of `heedful.planted` are built by hand, some of them with a question for each text, or
trained.
Every case is audited by the usual checks; its claims are judged with the powers that were measured
without the kind it belongs to (leave-one-kind-out), on other seeds; no trained kind is in that
table. Beside it stand the best single check, chosen likewise, and the raw τ of attention with
leave-one-out, its line drawn likewise, from cases written by hand where there are any. Exit 1 where
fewer than 95 % of all decided claims are right, or more than 15 % are undecided.
"""

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from benchmarks.known import USUAL, Said, all_examined
from heedful.pipeline.verdict.check_power import powers_for, read_bundled_powers
from heedful.pipeline.verdict.judge import claim_answers
from heedful.planted import ASKED_KINDS, TRAINED_KINDS, TrainedCase, cases, trained_cases

CASES, ASKED_CASES, TRAINED_CASES, TEXTS = 208, 108, 18, 40
RIGHT, OPEN = 0.95, 0.15  # at least, at most
CLAIMS = ("used", "ranks", "exclusive")
BASELINES = {
    "verdict": "the verdict",
    "single": "best single check",
    "tau": "raw τ with leave-one-out",
}
ANSWER_SIGNS = {"supported": 1, "refuted": -1}
MARKS = {1: "right", -1: "wrong", 0: "undecided"}


@dataclass(frozen=True)
class Scored:
    """One claim on one case: 1 right, −1 wrong, 0 undecided; by the verdict and two baselines."""

    kind: str
    claim: str
    truth: bool
    verdict: int
    single: int
    tau: int


def main() -> int:
    """Draw, judge, compare; the exit code."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--seed", type=int, required=True)
    asked.add_argument("--cases", type=int, default=CASES)
    asked.add_argument("--asked", type=int, default=ASKED_CASES)
    asked.add_argument("--trained", type=int, default=TRAINED_CASES)
    asked.add_argument("--workers", type=int, default=2)
    given = asked.parse_args()
    if given.seed == read_bundled_powers()["seed"]:
        print(f"Powers were measured on seed {given.seed}; choose another.", file=sys.stderr)
        return 2
    start, found = perf_counter(), list[Said]()
    drawn = [
        *cases(given.seed, given.cases),
        *cases(given.seed, given.asked, ASKED_KINDS),
        *trained_cases(given.seed, given.trained),
    ]
    if not drawn:
        print("No cases: one of --cases, --asked, --trained must be above 0.", file=sys.stderr)
        return 2
    for said in all_examined(drawn, (TEXTS,), USUAL, workers=given.workers):
        found += said
        if sys.stderr.isatty():
            print(f"\r{len(found)}/{len(drawn)} cases", end="", file=sys.stderr, flush=True)
    trained = [one for one in found if isinstance(one.case, TrainedCase)]
    written = [one for one in found if not isinstance(one.case, TrainedCase)]
    scored = [one for said in found for one in _scored(said, written or trained)]
    print(_table(scored, dict.fromkeys(one.case.kind for one in found)))
    if trained:
        print(_redrawn(trained))
    return _told(scored, len(found), perf_counter() - start)


def _redrawn(trained: Sequence[Said]) -> str:
    """How many trainings failed their proof, by kind."""
    count = Counter[str]()
    for one in trained:
        count[one.case.kind] += one.case.redrawn
    told = ", ".join(f"{kind} {number}" for kind, number in count.items() if number) or "none"
    return f"trainings given up because a proof failed: {told}; {len(trained)} were kept"


def _scored(said: Said, found: Sequence[Said]) -> list[Scored]:
    known = powers_for(said.where, left_out_kind=said.case.kind)
    judged = claim_answers(said.evidence, known)
    scored = []
    for claim in CLAIMS:
        truth = said.case.truth[claim]
        if truth is not None:
            side = 1 if truth else -1
            votes = (
                ANSWER_SIGNS.get(judged[claim], 0),
                _single(claim, said),
                _by_tau(claim, said, found),
            )
            scored.append(Scored(said.case.kind, claim, truth, *(side * one for one in votes)))
    return scored


def _single(claim: str, said: Said) -> int:
    """What the check says that is best on the other kinds."""
    known = powers_for(said.where, left_out_kind=said.case.kind)
    mine = [check for about, check in said.answers if about == claim]
    skilled = {check: power for check in mine if (power := known.of(claim, check))}
    if not skilled:
        return 0
    best = max(skilled, key=lambda check: skilled[check].skill.value)
    return said.answers[claim, best]


def _tau(said: Said) -> float:
    value = said.evidence.of("agreement", "tau_leave_one_out").value
    return 0.0 if np.isnan(value) else value  # equal weights agree with nothing


def _by_tau(claim: str, said: Said, found: Sequence[Said]) -> int:
    """Above or below the line that parts the other kinds best."""
    others = [
        (_tau(one), bool(one.case.truth[claim]))
        for one in found
        if one.case.kind != said.case.kind and one.case.truth[claim] is not None
    ]
    taus, truths = np.array([t for t, _ in others]), np.array([t for _, t in others])
    if len(set(truths.tolist())) < 2:
        return 0
    lines = np.unique(taus)
    right = [(np.mean(taus[truths] > line) + np.mean(taus[~truths] <= line)) for line in lines]
    return 1 if _tau(said) > lines[int(np.argmax(right))] else -1


def _table(scored: Sequence[Scored], kinds: Iterable[str]) -> str:
    """By kind and claim: the truth, and how often the verdict was right, wrong, undecided."""
    cells: dict[tuple[str, str], Counter[int]] = defaultdict(Counter)
    truths = {(one.kind, one.claim): one.truth for one in scored}
    for one in scored:
        cells[one.kind, one.claim][one.verdict] += 1
    lines = [
        "right/wrong/undecided by claim (· is not scored)",
        f"{'kind':20}" + "".join(f"{c:>22}" for c in CLAIMS),
    ]
    for kind in kinds:
        row = f"{kind:20}"
        for claim in CLAIMS:
            count = cells.get((kind, claim))
            told = "·"
            if count is not None:
                said = "/".join(str(count[mark]) for mark in MARKS)
                told = f"{'yes' if truths[kind, claim] else 'no'} {said}"
            row += f"{told:>22}"
        lines.append(row)
    return "\n".join(lines)


def _told(scored: Sequence[Scored], number: int, seconds: float) -> int:
    parts = {
        "written by hand": [
            one for one in scored if one.kind not in {*TRAINED_KINDS, *ASKED_KINDS}
        ],
        "with a question": [one for one in scored if one.kind in ASKED_KINDS],
        "trained": [one for one in scored if one.kind in TRAINED_KINDS],
    }
    for part, some in parts.items():
        for name, words in BASELINES.items():
            if some:
                print(f"{part}, {words}: {_figures([getattr(one, name) for one in some])[2]}")
    right, undecided, told = _figures([one.verdict for one in scored])
    met = right >= RIGHT and undecided <= OPEN
    print(
        f"calibration: {told}; {number} cases, {seconds / 60:.1f} minutes: "
        f"{'holds' if met else 'falls short'} (at least {RIGHT:.0%} right, at most {OPEN:.0%} "
        "undecided)"
    )
    return 0 if met else 1


def _figures(marks: Sequence[int]) -> tuple[float, float, str]:
    count = Counter(marks)
    decided = count[1] + count[-1]
    right, undecided = count[1] / max(1, decided), count[0] / len(marks)
    told = (
        f"{right:.1%} right of {decided} decided, {undecided:.1%} undecided of {len(marks)} claims"
    )
    return right, undecided, told


if __name__ == "__main__":
    sys.exit(main())
