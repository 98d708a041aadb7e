"""What every check says of a subject whose truth is known: its figures, and its answers."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from multiprocessing import get_context

import numpy as np
import torch

from heedful.checks import checks
from heedful.checks.interventions.simple import UniformWeights
from heedful.checks.spec import Evidence, apply_rules
from heedful.core.records import CheckResult
from heedful.core.values import Example
from heedful.models.batch_context import BatchContext
from heedful.numerics.stats.bootstrap import estimate_means
from heedful.numerics.tensor.distributions import tvd
from heedful.pipeline.audit.job import JobResult, run_job
from heedful.pipeline.audit.run_audit import power_architecture
from heedful.pipeline.plan.plan import Plan
from heedful.pipeline.verdict.check_power import VOTE_SIGNS, AuditSetting
from heedful.pipeline.verdict.estimate import estimate_all, measure_dataset
from heedful.planted import Case, TrainedCase, row_to_example
from heedful.results.tables import MeasurementColumns

CHECKS = ("agreement", "permutation", "adversarial", "erasure", "faithfulness")
FEW = {"faithfulness": {"methods": ("attention", "leave_one_out"), "ways": ("deletion",)}}
EVERY = Plan("planted", "planted", checks=CHECKS, settings=FEW, resamples=1000)
USUAL = Plan("planted", "planted", checks=CHECKS[:-1], resamples=1000)  # as an audit has them
TOKENS = 20_000
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
    columns = _columns(found, subject.labels)
    swapped = _swap(case, examples) if plan == EVERY else np.zeros(0)
    words = found.summary.words / len(rows)
    said = []
    for count in counts:
        some = columns.at(columns.instances[:count])
        some = replace(some, values={**some.values, **measure_dataset(plan, some)})
        missing = found.summary.missing
        evidence = estimate_all(plan, some, missing=missing, labels=subject.labels)
        if len(swapped):
            evidence = _with_swap(evidence, swapped[:count])
        where = AuditSetting(power_architecture(subject), words, count)
        said.append(_said(case, where, evidence))
    return said


def _columns(found: JobResult, labels: Sequence[str]) -> MeasurementColumns:
    """The values of all texts; every text is long enough to be measured."""
    instances = np.arange(len(found.predicted))
    predicted, label = (
        np.array([labels[classes[n]] for n in instances.tolist()], dtype=object)
        for classes in (found.predicted, found.label)
    )
    values = {one.key: one.values for one in found.columns if one.key._replace(method=None).plain}
    return MeasurementColumns(instances, predicted, label, values)


def _said(case: Known, where: AuditSetting, evidence: Evidence) -> Said:
    trained = ("needed", "necessity")  # of which there is the swap only
    mine = {
        (str(vote.claim), name): vote
        for name in evidence.results
        for vote in checks.spec(name).votes
        if (vote.claim, name) != trained
    }
    return Said(
        case,
        where,
        {
            pair: VOTE_SIGNS.get(apply_rules(one.rules, evidence)[0], 0)
            for pair, one in mine.items()
        },
        {pair: one.score(evidence) for pair, one in mine.items()},
        evidence,
    )


def _swap(case: Known, examples: Sequence[Example]) -> np.ndarray:
    """How far equal weights move the output: the part of `necessity` that needs no training."""
    subject, moved = case.subject, []
    for start in range(0, len(examples), 16):
        encoded = [subject.encode(one) for one in examples[start : start + 16]]
        context = BatchContext(subject, subject.batch(encoded))
        with torch.no_grad():
            even = context.decode(UniformWeights()(context))[0].softmax(-1)
        moved.append(tvd(even, context.forward.probabilities).double())
    return torch.cat(moved).numpy()


def _with_swap(evidence: Evidence, moved: np.ndarray) -> Evidence:
    estimates = estimate_means({"uniform_swap_tvd": moved}, resamples=EVERY.resamples)
    result = CheckResult("undecided", "", estimates)
    settings = {**evidence.settings, "necessity": asdict(checks.build("necessity"))}
    results = {**evidence.results, "necessity": result}
    return replace(evidence, results=results, settings=settings)


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
