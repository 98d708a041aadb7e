"""Is the verdict right? Models whose truth is known by sets of words, drawn anew.

python -m benchmarks.calibration --seed N [--rounds 2] [--kinds A B …] [--out FILE.json]

Every case of `heedful.planted.influence` is audited as a user would audit it, and its answer is
held against the truth. Nothing in the rule is fitted to data, so leaving a family out while fitting
would be vacuous. Beside it stand the rule that heedful had before (`agreement` on *ranks*,
`permutation` on *used*), answers that are always the same, and the raw τ of attention with
leave-one-out, its line drawn on the other families.

A mixed kind is right where the parts of the texts are named, wrong where it is answered, and
undecided otherwise. Exit 1 where fewer than 95 % of the decided are right, more than one kind of a
family is wrong, or more than 35 % of the unmixed cases (50 % in a family) are undecided.
"""

import argparse
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter

import numpy as np
import torch
from scipy.stats import binomtest

from benchmarks.audited import audit_examples
from heedful.checks.attention.agreement.spec import RULES as AGREEMENT_RULES
from heedful.checks.attention.permutation.spec import USED_RULES as PERMUTATION_RULES
from heedful.checks.influence.check import InfluenceCheck
from heedful.checks.influence.rules import RANKS_RULES, USED_RULES, mixed_answers, share_below
from heedful.checks.spec import Evidence, VoteRule, apply_rules
from heedful.core.atomic_files import write_atomic
from heedful.core.records import Estimate
from heedful.pipeline.plan.plan import Plan
from heedful.pipeline.verdict.check_power import ANY, VOTE_SIGNS
from heedful.planted import row_to_example
from heedful.planted.influence.kind import InfluenceCase, influence_cases, influence_kinds

TEXTS, COSTLY_TEXTS = 120, 60
MOST_WORDS, LONG_TEXTS = 60, 40  # of longer texts fewer are audited
POWERS = Path("src/heedful/pipeline/verdict/power.json")
VOTE_PLACES = {1: 1, -1: 2, 0: 3}  # of a row's counts, after the truth
ROUNDS = 2  # cases of each kind
RIGHT, OPEN, OPEN_IN_FAMILY, WRONG_KINDS = 0.95, 0.35, 0.5, 1
CLAIMS = ("ranks", "used")
SETTINGS = {"influence": asdict(InfluenceCheck(methods=("attention",), costly_texts=COSTLY_TEXTS))}
PLAN = Plan(
    "planted", "planted", checks=("influence", "agreement", "permutation"), settings=SETTINGS
)
RULES: dict[str, dict[str, tuple[VoteRule, ...]]] = {
    "heedful": {"ranks": RANKS_RULES, "used": USED_RULES},
    "before": {"ranks": AGREEMENT_RULES, "used": PERMUTATION_RULES},
}
NAMES = {
    "heedful": "the verdict",
    "before": "the rule before: single deletion",
    "tau": "raw τ with leave-one-out",
    "faithful": "always faithful",
    "undecided": "always undecided",
}


@dataclass(frozen=True)
class CaseAnswers:
    """The answers about one case: 1 for, −1 against, 0 undecided, by rule and claim."""

    kind: str
    family: str
    architecture: str
    length: int
    seed: int
    truth: dict[str, bool | None]
    mixture: str | None
    said: dict[str, dict[str, int]]
    why: dict[str, str]
    places: dict[str, str]
    tau: float
    names_parts: bool
    seconds: float

    @property
    def explains(self) -> int | None:
        """The true answer: 1 faithful, −1 unfaithful, None mixed or not known."""
        if False in self.truth.values():
            return -1
        return 1 if all(self.truth.values()) else None

    def answer(self, rule: str) -> int:
        """The answer of a rule."""
        if rule in ("faithful", "undecided"):
            return int(rule == "faithful")
        said = self.said[rule]
        if -1 in said.values():
            return -1
        return int(set(said.values()) == {1})

    def mark(self, rule: str) -> int:
        """1 right, −1 wrong, 0 undecided."""
        answer, truth = self.answer(rule), self.explains
        if truth is not None:
            return answer * truth
        if answer:
            return -1
        return int(rule == "heedful" and self.names_parts)


def main() -> int:
    """Draw, audit, compare; the exit code."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--seed", type=int, required=True)
    asked.add_argument("--rounds", type=int, default=ROUNDS, help="cases of each kind")
    asked.add_argument("--kinds", nargs="*", help="kinds, or families; all by default")
    asked.add_argument("--workers", type=int, default=2)
    asked.add_argument("--out", type=Path, help="keep every answer in a JSON file")
    asked.add_argument("--write-power", action="store_true", help="renew the powers that ship")
    given = asked.parse_args()
    kinds = [
        name
        for name, one in influence_kinds().items()
        if not given.kinds or {name, one.family} & {*given.kinds}
    ]
    if not kinds:
        print(f"No kind or family is named {given.kinds}.", file=sys.stderr)
        return 2
    start, found = perf_counter(), list[CaseAnswers]()
    drawn = influence_cases(given.seed, given.rounds * len(kinds), kinds)
    for one in _audited(drawn, given.workers):
        found.append(one)
        if sys.stderr.isatty():
            print(f"\r{len(found)}/{len(drawn)} cases", end="", file=sys.stderr, flush=True)
        if given.out:
            text = json.dumps([asdict(answers) for answers in found], indent=1)
            given.out.write_text(text, "utf-8")
    found = with_tau_answers(found)
    if given.write_power:
        write_powers(found, given.seed)
    print(_table(found))
    return _conclude(found, perf_counter() - start)


def _audited(drawn: Sequence[InfluenceCase], workers: int) -> Iterator[CaseAnswers]:
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        yield from pool.map(audit_case, drawn)


def audit_case(case: InfluenceCase) -> CaseAnswers:
    """Run the checks on one case and apply every rule."""
    torch.set_num_threads(1)
    count = TEXTS if case.length <= MOST_WORDS else LONG_TEXTS
    start, subject, rows = perf_counter(), case.subject, case.texts(count)
    examples = [
        row_to_example(row, number, subject.labels.index(row["label"]))
        for number, row in enumerate(rows)
    ]
    plan = PLAN.fitted(examples, subject)
    evidence = audit_examples(subject, examples, plan)
    answers = {
        name: {claim: apply_rules(rules[claim], evidence) for claim in CLAIMS}
        for name, rules in RULES.items()
    }
    about = case.about
    return CaseAnswers(
        case.kind,
        about.family,
        about.architecture,
        case.length,
        case.seed,
        {claim: getattr(case.truth, claim) for claim in CLAIMS},
        None if case.truth.mixture is None else case.truth.mixture.split,
        {
            name: {claim: VOTE_SIGNS.get(one[0], 0) for claim, one in by_claim.items()}
            for name, by_claim in answers.items()
        },
        {claim: answers["heedful"][claim][1] for claim in CLAIMS},
        {
            name: str(evidence.of("influence", name, method="attention"))
            for name in ("order", "top_set", "top_word")
        },
        evidence.of("agreement", "tau_leave_one_out").value,
        _names_parts(case, evidence),
        perf_counter() - start,
    )


def _names_parts(case: InfluenceCase, evidence: Evidence) -> bool:
    """Whether the answer says that the texts differ, by the split that the mixture has."""
    mixture = case.truth.mixture
    if mixture is None:
        return False
    measure = "order" if mixture.claim == "ranks" else "leverage_top"
    named = {one.split for one in mixed_answers(evidence, measure)}
    if mixture.split in named:
        return True
    share: Estimate = share_below(evidence)
    return mixture.claim == "used" and share.low > 0.1 and share.high < 0.9


def with_tau_answers(found: Sequence[CaseAnswers]) -> list[CaseAnswers]:
    """With the answers by raw τ: above or below the line that parts the other families best."""
    for one in found:
        others = [o for o in found if o.family != one.family and o.explains is not None]
        taus = np.nan_to_num([o.tau for o in others])
        truths = np.array([o.explains == 1 for o in others])
        said = 0
        if len({*truths.tolist()}) == 2:
            lines = np.unique(taus)
            right = [np.mean(taus[truths] > x) + np.mean(taus[~truths] <= x) for x in lines]
            said = 1 if np.nan_to_num(one.tau) > lines[int(np.argmax(right))] else -1
        one.said["tau"] = {"ranks": said}
    return [*found]


def write_powers(found: Sequence[CaseAnswers], seed: int) -> None:
    """Renew the rows of `influence` in the table that ships: how it answered about each kind."""
    table = json.loads(POWERS.read_text("utf-8"))
    rows = [row for row in table["rows"] if row["check"] != "influence"]
    for claim in CLAIMS:
        kinds: dict[str, list[bool | int | None]] = {}
        for one in found:
            counts = kinds.setdefault(one.kind, [one.truth[claim], 0, 0, 0])
            counts[VOTE_PLACES[one.said["heedful"][claim]]] += 1
        about = {"claim": claim, "check": "influence", "architecture": ANY, "words": None}
        rows.append({**about, "texts": TEXTS, "seed": seed, "auc": None, "kinds": kinds})
    text = json.dumps({**table, "rows": rows}, separators=(",", ":"))
    write_atomic(POWERS, text.replace('{"claim"', '\n{"claim"'))


def kinds_among_decided(
    found: Sequence[CaseAnswers], mark: Callable[[CaseAnswers], int]
) -> dict[str, bool]:
    """Each kind with a decided case: whether all of its decided cases are right."""
    marks: dict[str, list[int]] = defaultdict(list)
    for one in found:
        if mark(one):
            marks[one.kind].append(mark(one))
    return {kind: min(several) > 0 for kind, several in marks.items()}


def _table(found: Sequence[CaseAnswers]) -> str:
    """By family and kind: the truth, and how often the verdict was right, wrong, undecided."""
    lines = ["right/wrong/undecided by kind: the verdict, and the rule before"]
    by_family: dict[str, dict[str, list[CaseAnswers]]] = defaultdict(lambda: defaultdict(list))
    for one in found:
        by_family[one.family][one.kind].append(one)
    for family, kinds in by_family.items():
        lines.append(f"{family}")
        for kind, cases in kinds.items():
            truth = {1: "faithful", -1: "unfaithful", None: "mixed"}[cases[0].explains]
            said = "   ".join(f"{_counted(cases, rule):>7}" for rule in ("heedful", "before"))
            lines.append(f"  {kind:34}{truth:12}{said}")
    return "\n".join(lines)


def _counted(cases: Sequence[CaseAnswers], rule: str) -> str:
    count = Counter(one.mark(rule) for one in cases)
    return "/".join(str(count[mark]) for mark in (1, -1, 0))


def _conclude(found: Sequence[CaseAnswers], seconds: float) -> int:
    for rule, name in NAMES.items():
        print(f"{name}: {describe_figures(found, rule)}")
    for claim in CLAIMS:
        print(f"{claim} alone: {_claim_figures(found, claim)}")
    for label, part in (("architecture", "architecture"), ("words", "length")):
        for value in dict.fromkeys(getattr(one, part) for one in found):
            some = [one for one in found if getattr(one, part) == value]
            print(f"{label} {value}: {describe_figures(some, 'heedful')}")
    failures = [*_failures(found)]
    decided = kinds_among_decided(found, lambda one: one.mark("heedful"))
    print(
        f"calibration: {describe_figures(found, 'heedful')}; "
        f"{sum(decided.values())} of {len(decided)} decided kinds right; "
        f"{len(found)} cases, {seconds / 60:.1f} minutes: "
        f"{'falls short: ' + '; '.join(failures) if failures else 'holds'}"
    )
    return 1 if failures else 0


def describe_figures(found: Sequence[CaseAnswers], rule: str) -> str:
    """How a rule did: right of the decided, with an exact interval over kinds, and undecided."""
    marks = Counter(one.mark(rule) for one in found)
    decided = marks[1] + marks[-1]
    unmixed = [one for one in found if one.explains is not None]
    open_ones = sum(one.mark(rule) == 0 for one in unmixed)
    kinds = kinds_among_decided(found, lambda one: one.mark(rule))
    bound = ""
    if kinds:
        exact = binomtest(sum(kinds.values()), len(kinds)).proportion_ci(0.95, "exact")
        bound = f" (kinds: {sum(kinds.values())}/{len(kinds)} [{exact.low:.2f}, {exact.high:.2f}])"
    share = marks[1] / decided if decided else float("nan")
    return (
        f"{share:.1%} right of {decided} decided{bound}, "
        f"{open_ones}/{len(unmixed)} unmixed cases undecided"
    )


def _claim_figures(found: Sequence[CaseAnswers], claim: str) -> str:
    marks = Counter(
        one.said["heedful"][claim] * (1 if one.truth[claim] else -1)
        for one in found
        if one.truth[claim] is not None
    )
    decided = marks[1] + marks[-1]
    return f"{marks[1]}/{decided} decided right, {marks[0]} undecided"


def _failures(found: Sequence[CaseAnswers]) -> Iterator[str]:
    marks = Counter(one.mark("heedful") for one in found)
    decided = marks[1] + marks[-1]
    if not decided or marks[1] / decided < RIGHT:
        yield f"fewer than {RIGHT:.0%} of the decided are right"
    unmixed = [one for one in found if one.explains is not None]
    if sum(one.mark("heedful") == 0 for one in unmixed) > OPEN * len(unmixed):
        yield f"more than {OPEN:.0%} of the unmixed are undecided"
    for family in dict.fromkeys(one.family for one in found):
        mine = [one for one in found if one.family == family]
        wrong = {one.kind for one in mine if one.mark("heedful") < 0}
        if len(wrong) > WRONG_KINDS:
            yield f"{family}: wrong on {', '.join(sorted(wrong))}"
        mine = [one for one in mine if one.explains is not None]
        if sum(one.mark("heedful") == 0 for one in mine) > OPEN_IN_FAMILY * len(mine):
            yield f"{family}: more than {OPEN_IN_FAMILY:.0%} undecided"


if __name__ == "__main__":
    sys.exit(main())
