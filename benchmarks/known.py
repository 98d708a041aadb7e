"""What every check says of a subject whose truth is known: its figures, and its answers."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from multiprocessing import get_context

import torch

from benchmarks.audited import TOKENS, columns_of
from heedful.checks import checks
from heedful.checks.spec import Evidence, apply_rules
from heedful.pipeline.audit.job import run_job
from heedful.pipeline.audit.run_audit import power_architecture
from heedful.pipeline.plan.plan import Plan
from heedful.pipeline.verdict.check_power import VOTE_SIGNS, AuditSetting
from heedful.pipeline.verdict.estimate import estimate_all, measure_dataset
from heedful.planted import Case, TrainedCase, row_to_example

EVERY = Plan("planted", "planted", checks=("permutation", "adversarial"), resamples=1000)
SLOW = 25
Known = Case | TrainedCase


@dataclass(frozen=True)
class Said:
    """Of one case and so many of its texts: each witness's answer and score, by claim and check."""

    case: Known
    where: AuditSetting
    answers: Mapping[tuple[str, str], int]
    scores: Mapping[tuple[str, str], float]
    evidence: Evidence = field(repr=False)


def examined(case: Known, counts: Sequence[int], plan: Plan = EVERY) -> list[Said]:
    """All checks put to a case once; what they say of its first texts, for each count."""
    rows, subject = case.texts(max(counts)), case.subject
    examples = [
        row_to_example(row, number, subject.labels.index(row["label"]))
        for number, row in enumerate(rows)
    ]
    parts = plan.build_checks()
    found = run_job(subject, examples, parts, seed=plan.seed, max_batch_tokens=TOKENS)
    columns = columns_of(found, subject.labels)
    words = found.summary.words / len(rows)
    said = []
    for count in counts:
        some = columns.at(columns.instances[:count])
        some = replace(some, values={**some.values, **measure_dataset(plan, some)})
        missing = found.summary.missing
        evidence = estimate_all(plan, some, missing=missing, labels=subject.labels)
        where = AuditSetting(power_architecture(subject), words, count)
        said.append(_said(case, where, evidence))
    return said


def _said(case: Known, where: AuditSetting, evidence: Evidence) -> Said:
    mine = {
        (str(vote.claim), name): vote
        for name in evidence.results
        for vote in checks.spec(name).votes
    }
    answers = {pair: apply_rules(one.rules, evidence)[0] for pair, one in mine.items()}
    return Said(
        case,
        where,
        {pair: VOTE_SIGNS.get(answer, 0) for pair, answer in answers.items()},
        {pair: one.score(evidence) for pair, one in mine.items()},
        evidence,
    )


def _work(task: tuple[Known, tuple[int, ...], Plan]) -> list[Said]:
    torch.set_num_threads(1)
    return examined(*task)


def alone(names: Sequence[str]) -> Plan:
    """The plan of some checks."""
    return Plan("planted", "planted", checks=tuple(names), resamples=1000)


def affordable(case: Known, counts: Sequence[int]) -> tuple[int, ...]:
    """No more than 25 texts where each takes seconds: long ones before a transformer."""
    slow = case.kind.startswith("compiled") and case.length > 100
    return tuple(dict.fromkeys(min(one, SLOW) if slow else one for one in counts))


def all_examined(
    cases: Sequence[Known], counts: Sequence[int], plan: Plan = EVERY, *, workers: int = 2
) -> Iterator[list[Said]]:
    """Every case, in order, by so many processes."""
    tasks = [(case, affordable(case, counts), plan) for case in cases]
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        yield from pool.map(_work, tasks)
