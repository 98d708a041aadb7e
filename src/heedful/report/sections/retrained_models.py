"""The checks that retrain, and the models that a run retrained, as its manifest records them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan, nan
from typing import Any

from heedful.results.document import Section, Table
from heedful.results.run_records import RunRecords, sanitise_text

ENDS = {True: "dev score no longer rose", False: "limit of epochs", None: "fixed schedule"}
HEAD: tuple[str, ...] = ("model", "epochs", "best", "ended by", "best dev score")
HEAD += ("dev accuracy there", "CPU seconds")


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


def build_retraining(records: RunRecords, parts: Sequence[Section]) -> Section | None:
    """The sections of checks that retrain, then every model; None where there are neither."""
    models = read_retrained_models(records.manifest)
    if not parts and not models:
        return None
    words = (
        f"Checks that retrain the model. Intervals are {100 * records.level:g} %; where several "
        "seeds were trained they are over seeds and texts, and with so few seeds somewhat too "
        "narrow.",
    )
    parts = (*parts, *([_models_section(records, models)] if models else []))
    return Section("retraining", "Retraining", words, parts=parts, short="Retraining")


def _models_section(records: RunRecords, models: Sequence[RetrainedModel]) -> Section:
    whole = sum(one.cpu for one in models if not isnan(one.cpu))
    total = ("all", "", "", "", "", "", f"{whole:.1f}")
    raised = (
        "The dev score is what training raises: for adversaries and deceivers, minus their loss."
    )
    table = Table(HEAD, (*map(_model_row, models), total))
    every = Section("retrained-models-table", "Every model", (raised,), (table,))
    sentence = describe_models(records.manifest)
    return Section("retrained-models", "Retrained models", words=(sentence,), folded=(every,))


def _model_row(one: RetrainedModel) -> tuple[str, ...]:
    scores = (_decimals(one.score, 3), _decimals(one.accuracy, 3), _decimals(one.cpu, 1))
    return (one.name, str(one.epochs), str(one.best or "–"), one.ended, *scores)


def _decimals(value: float, digits: int) -> str:
    return "–" if isnan(value) else f"{value:z.{digits}f}".replace("-", "\N{MINUS SIGN}")


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
    counts = [one.epochs for one in models]
    epochs = "–".join(map(str, sorted({min(counts), max(counts)}))) + " epochs"
    many = f"{len(models)} models retrained, {epochs} each"
    return f"{many if len(models) > 1 else f'1 model retrained, {epochs}'}; {how}."


def _model(raw: Mapping[str, Any]) -> RetrainedModel:
    name, best = sanitise_text(str(raw.get("name", ""))), raw.get("best_epoch")
    ended = ENDS.get(raw.get("plateau"), ENDS[None])
    score, accuracy = (_at(raw.get(key), best) for key in ("dev_scores", "dev_accuracies"))
    epochs, cpu = int(raw.get("epochs") or 0), float(raw.get("cpu_seconds") or nan)
    return RetrainedModel(name, epochs, best, ended, score, accuracy, cpu)


def _at(scores: Any, epoch: Any) -> float:
    """The score after this epoch, the first being 1."""
    if not scores or not epoch or epoch > len(scores) or scores[epoch - 1] is None:
        return nan
    return float(scores[epoch - 1])
