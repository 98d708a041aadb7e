"""What works for a subject: attention path, parity, methods, checks, and what they cost."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from heedful.checks import checks, default_checks
from heedful.checks.base import Findings
from heedful.checks.influence.check import InfluenceCheck
from heedful.checks.influence.cost import expected_passes
from heedful.checks.retraining_base import RetrainingCheck
from heedful.core.errors import HeedfulError, NotApplicable
from heedful.core.values import Example
from heedful.methods import methods
from heedful.models.batch_context import BatchContext
from heedful.models.protocols import HasLogitsOnly, RunsVariants, Subject
from heedful.pipeline.audit.job import run_job
from heedful.pipeline.audit.run_audit import describe_attention
from heedful.training.variants.models import read_recipe

PROBE_TEXT = (
    "a film that is so fine , and in places so very dull , that nobody could say why it works"
)
SHORT_PROBE_TEXT = "so fine , so very dull"  # for methods: some take few words only
PROBE_COUNT = 16


def inspect_subject(subject: Subject) -> dict[str, Any]:
    """Try every method and check on a probe text; each is "ok" or the reason why not."""
    context, short = (
        BatchContext(subject, subject.batch([subject.encode(Example(0, text, 0))]))
        for text in (PROBE_TEXT, SHORT_PROBE_TEXT)
    )
    maps, attention = context.forward.maps, describe_attention(subject)
    return {
        "family": subject.family,
        **attention,
        "parity": max(context.parity, attention["parity"]),
        "layers": len(maps) or 1,
        "heads": maps[0].shape[1] if maps else 1,
        "max_length": getattr(subject, "max_length", getattr(subject, "max_words", None)),
        "dtype": str(context.forward.logits.dtype).removeprefix("torch."),
        "labels": list(subject.labels),
        "methods": {name: _ok_or_reason(_method(name, short)) for name in methods},
        "checks": {name: _ok_or_reason(_check(name, context)) for name in checks},
        "variants": _describe_variants(subject),
        **_cost(subject),
        "influence_passes": _influence_passes(subject),
    }


def _describe_variants(subject: Subject) -> str:
    """How texts without some of their words are run; a shortcut was proved when loading."""
    if isinstance(subject, RunsVariants):
        return "shared states"
    if not isinstance(subject, HasLogitsOnly):
        return "whole passes"
    short = getattr(subject, "first_position_only", None) is not None
    return "own attention, last layer for one position" if short else "own attention"


def _influence_passes(subject: Subject) -> dict[str, float]:
    """Whole passes that `influence` takes for a text of 20 words, part by part."""
    encoded = subject.encode(Example(0, PROBE_TEXT, 0))
    special, check = len(encoded.ids) - encoded.explained_tokens, InfluenceCheck()
    found = expected_passes(special=special, methods=len(check.methods) - 1)
    return {name: round(passes, 1) for name, passes in found.items() if passes}


def _method(name: str, context: BatchContext) -> Callable[[], object]:
    few = {"samples": 8} if "samples" in methods[name].__dict__ else {}
    return lambda: methods.build(name, **few)(context, context.predicted)


def _check(name: str, context: BatchContext) -> Callable[[], object]:
    check = checks.build(name)
    if isinstance(check, RetrainingCheck):
        return lambda: _require_retrainable(context.subject)
    return lambda: _require_measurements(check(context))


def _require_measurements(findings: Findings) -> None:
    """A check that refuses a model raises nothing: it has no figure, and a reason for each."""
    if not findings.measurements:
        reasons = dict.fromkeys(one.reason for one in findings.missing) or [
            "It measures nothing here."
        ]
        raise NotApplicable(" ".join(f"{one[0].upper()}{one[1:].rstrip('.')}." for one in reasons))


def _require_retrainable(subject: Subject) -> None:
    """Raise NotApplicable for a model that no check could retrain, whatever the data."""
    if getattr(subject, "task", None) != "classification":  # a transformer is tuned if allowed
        read_recipe(subject)


def _ok_or_reason(work: Callable[[], object]) -> str:
    try:
        with torch.no_grad():
            work()
    except HeedfulError as reason:
        return str(reason)
    return "ok"


def _cost(subject: Subject) -> dict[str, Any]:
    """Measured on texts of the probe's length, no two alike; longer texts cost more."""
    words = PROBE_TEXT.split()
    texts = [Example(n, " ".join(words[n:] + words[:n]), 0) for n in range(PROBE_COUNT)]
    parts = {name: checks.build(name) for name in default_checks()}
    with _count_tokens(subject) as tokens:
        seconds = run_job(subject, texts, parts, seed=0, max_batch_tokens=20_000).summary.seconds
    per_text = {name: round(one["cpu"] * 1000 / PROBE_COUNT, 2) for name, one in seconds.items()}
    found: dict[str, Any] = {"cpu_seconds_per_1000_texts": per_text}
    found["cpu_minutes_per_1000_texts"] = round(sum(per_text.values()) / 60, 1)
    if tokens:
        length = sum(len(subject.encode(one).ids) for one in texts)
        found["token_passes_per_token"] = round(sum(tokens) / length, 1)
    return found


@contextmanager
def _count_tokens(subject: Subject) -> Iterator[list[int]]:
    """How many tokens go into a transformers model inside the block, pass by pass."""
    tokens: list[int] = []
    if not hasattr(subject, "model") or not hasattr(subject.model, "register_forward_pre_hook"):
        yield tokens
        return

    def count(_: object, __: object, given: dict[str, Any]) -> None:
        if isinstance(ids := given.get("input_ids"), torch.Tensor):
            tokens.append(ids.numel())

    handle = subject.model.register_forward_pre_hook(count, with_kwargs=True)
    try:
        yield tokens
    finally:
        handle.remove()
