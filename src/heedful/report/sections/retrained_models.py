"""The models that a run retrained, as its manifest records them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import nan
from typing import Any

from heedful.results.run_records import sanitise_text

ENDS = {True: "dev score no longer rose", False: "limit of epochs", None: "fixed schedule"}


@dataclass(frozen=True, slots=True)
class RetrainedModel:
    """How one model was trained; scores are NaN where none was kept."""

    name: str
    epochs: int
    best: int | None
    ended: str
    score: float
    accuracy: float
    cpu: float


def read_retrained_models(manifest: Mapping[str, Any]) -> tuple[RetrainedModel, ...]:
    """Every retrained model, in order; older runs have none."""
    return tuple(_model(one) for one in manifest.get("retrained") or ())


def describe_models(manifest: Mapping[str, Any]) -> str:
    """How many there are and how their training ended, in one sentence; nothing where none are.

    >>> describe_models({"retrained": [{"epochs": 5, "plateau": False}]})
    '1 model retrained, 5 epochs; 1 stopped at the limit of epochs.'
    """
    models = read_retrained_models(manifest)
    if not models:
        return ""
    ended = [one.ended for one in models]
    ways = (
        (ended.count(ENDS[True]), "trained until the dev score no longer rose"),
        (ended.count(ENDS[False]), "stopped at the limit of epochs"),
        (ended.count(ENDS[None]), "trained on a fixed schedule"),
    )
    how = ", ".join(f"{count} {words}" for count, words in ways if count)
    epochs = f"{_range(one.epochs for one in models)} epochs"
    many = f"{len(models)} models retrained, {epochs} each"
    return f"{many if len(models) > 1 else f'1 model retrained, {epochs}'}; {how}."


def _range(counts: Iterable[int]) -> str:
    known = sorted(counts)
    return f"{known[0]}" if known[0] == known[-1] else f"{known[0]}–{known[-1]}"


def _model(raw: Mapping[str, Any]) -> RetrainedModel:
    best = raw.get("best_epoch")
    return RetrainedModel(
        name=sanitise_text(str(raw.get("name", ""))),
        epochs=int(raw.get("epochs") or 0),
        best=best,
        ended=ENDS.get(raw.get("plateau"), ENDS[None]),
        score=_at(raw.get("dev_scores"), best),
        accuracy=_at(raw.get("dev_accuracies"), best),
        cpu=float(raw.get("cpu_seconds") or nan),
    )


def _at(scores: Any, epoch: Any) -> float:
    """The score after this epoch, the first being 1."""
    if not scores or not epoch or epoch > len(scores) or scores[epoch - 1] is None:
        return nan
    return float(scores[epoch - 1])
