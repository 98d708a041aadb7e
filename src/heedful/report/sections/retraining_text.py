"""The section on models made anew: what each check found, in sentences and small tables."""

from collections.abc import Mapping
from dataclasses import dataclass

from heedful.core.records import NO_ESTIMATE, Estimate
from heedful.report.check_specs import find_spec
from heedful.report.sections.provenance import read_audited_attention
from heedful.report.sections.retrained_models import (
    RetrainedModel,
    describe_models,
    read_retrained_models,
)
from heedful.report.sections.retraining import RetrainedCheck, WeightResult, is_known
from heedful.report.sections.roar import PATTERN
from heedful.results.run_records import RunRecords, sanitise_text

SHARED = (
    "These models were fine-tuned from one pretrained encoder. Models that share their pretraining "
    "share much of their attention: the spread from seed to seed is understated."
)
TWO_QUESTIONS = (
    "These are two questions: a model may use its attention although one trained without would "
    "do as well."
)
SCALES = (
    "TVD is ½ Σ|Δp| between the adversary's output and the model's, from 0 to 1; the published "
    "code halves it once more. Trained down is TVD − λ·KL(own ‖ base) of the attentions, KL from "
    "the adversary's own to the model's."
)
REVERSED = SCALES.replace("KL(own ‖ base)", "KL(base ‖ own)").replace(
    "from the adversary's own to the model's", "from the model's to the adversary's"
)

WITHOUT = "without "  # so the control of deception begins its name
BLOCKED = (
    "Hidden words and others attended to their own kind only, in every layer, and the pooled token "
    "to all: what its row does not take up cannot come by another way."
)
UNBLOCKED = (
    "Hidden words were not blocked: other words may carry what they say to the pooled token."
)


@dataclass(frozen=True, slots=True)
class WeightRow:
    """A row of a small table; `reported` marks the one that the check reports."""

    name: str
    cells: tuple[Estimate, ...]
    reported: bool = False


@dataclass(frozen=True, slots=True)
class RetrainingPart:
    """One check in the section; `boxes` are sentences that stand side by side under headings."""

    name: str
    question: str
    answer: str
    why: str
    boxes: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    rows: tuple[WeightRow, ...] = ()


@dataclass(frozen=True, slots=True)
class RetrainingSection:
    """The whole section: its checks, then every model."""

    parts: tuple[RetrainingPart, ...]
    models: tuple[RetrainedModel, ...]
    sentence: str

    @property
    def cpu(self) -> float:
        """CPU seconds of all models together, as far as they are known."""
        return sum(one.cpu for one in self.models if one.cpu == one.cpu)


def build_section(
    records: RunRecords, found: Mapping[str, RetrainedCheck]
) -> RetrainingSection | None:
    """What to tell; None where no such check was run."""
    if not found:
        return None
    tuned = read_audited_attention(records.manifest) is not None
    models = read_retrained_models(records.manifest)
    parts = tuple(_part(one, models, tuned=tuned) for one in found.values())
    return RetrainingSection(parts, models, describe_models(records.manifest))


def format_estimate(estimate: Estimate) -> str:
    """An estimate within a sentence, with a true minus sign.

    >>> format_estimate(Estimate(-0.25, -0.5, 0.0, 9)), format_estimate(NO_ESTIMATE)
    ('−0.250 [−0.500, 0.000]', '–')
    """
    return str(estimate).replace("-", "\N{MINUS SIGN}") if is_known(estimate) else "–"


def _part(
    found: RetrainedCheck, models: tuple[RetrainedModel, ...], *, tuned: bool
) -> RetrainingPart:
    result = found.result
    head = RetrainingPart(
        found.name, find_spec(found.name).question, result.answer, sanitise_text(result.why)
    )
    if not any(map(is_known, result.estimates.values())):
        return head
    boxes, notes, columns, rows = PARTS[found.name](found)
    if found.name == "seeds" and tuned:
        notes = (*notes, SHARED)
    if found.name == "deception":
        notes = (*_hidden(found, models, tuned=tuned), *notes)
    return RetrainingPart(
        head.name, head.question, head.answer, head.why, boxes, notes, columns, rows
    )


PartContent = tuple[
    tuple[tuple[str, str], ...], tuple[str, ...], tuple[str, ...], tuple[WeightRow, ...]
]


def _necessity(found: RetrainedCheck) -> PartContent:
    gain, swap = found.estimate("gain"), found.estimate("uniform_swap_tvd")
    margin = found.setting("margin")
    counts = "" if margin is None else f" A difference of less than {margin:g} counts as none."
    boxes = (
        (
            "Used as it is",
            "Uniform weights imposed on the model as it is move its output by "
            f"{format_estimate(swap)} (TVD).",
        ),
        (
            "Needed when trained",
            "Trained with attention of its own, the same recipe gains "
            f"{format_estimate(gain)} in accuracy over uniform weights.{counts}",
        ),
    )
    return boxes, (TWO_QUESTIONS,), (), ()


def _seeds(found: RetrainedCheck) -> PartContent:
    seeds, shuffled, uniform, adversary = (
        format_estimate(found.estimate(f"jsd_{name}"))
        for name in ("seeds", "shuffled", "uniform", "adversary")
    )
    note = (
        "Distances are between the attention of the audited model and that of models trained with "
        f"other seeds, each text's median over seeds: {seeds} on average. The distance of its own "
        f"weights shuffled is {shuffled}, of uniform weights {uniform}, of an adversary's "
        f"{adversary}."
    )
    return (), (note,), (), ()


def _adversary(found: RetrainedCheck) -> PartContent:
    rows = [_tried(one, ("jsd", "tvd", "score")) for one in found.tried]
    base = WeightRow(
        "the model under audit", (NO_ESTIMATE, NO_ESTIMATE, found.estimate("score_base"))
    )
    scales = REVERSED if found.settings.get("reverse") is True else SCALES
    return (), (scales,), ("JSD", "TVD", "accuracy"), (*rows, base)


def _guide(found: RetrainedCheck) -> PartContent:
    others = {"uniform": "uniform weights", "own": "weights it learns", "adversary": "an adversary"}
    gains = ", ".join(
        f"{format_estimate(found.estimate(f'base_minus_{one}'))} over {words}"
        for one, words in others.items()
        if is_known(found.estimate(f"base_minus_{one}"))
    )
    note = f"Led by the attention under audit, the model without context gains {gains} in accuracy."
    return (), (note if gains else "",), (), ()


def _deception(found: RetrainedCheck) -> PartContent:
    note = (
        "The control: a model trained and tested without the words reaches "
        f"{format_estimate(found.estimate('score_without_words'))}, a loss of "
        f"{format_estimate(found.estimate('words_worth'))}. The words are decisive only if that "
        "loses accuracy, and only then does hiding them show anything."
    )
    before = WeightRow("before", (found.estimate("mass_before"), found.estimate("score_before")))
    rows = [_tried(one, ("mass_after", "score_after")) for one in found.tried]
    without = WeightRow("without the words", (NO_ESTIMATE, found.estimate("score_without_words")))
    columns = ("share of attention", "accuracy")
    return (), (note,), columns, (before, *rows, without)


def _hidden(
    found: RetrainedCheck, models: tuple[RetrainedModel, ...], *, tuned: bool
) -> tuple[str, ...]:
    """Which words were hidden, as the control that does without them is named, and how."""
    controls = [one.name for one in models if one.name.startswith(WITHOUT)]
    words = controls[0].removeprefix(WITHOUT).rsplit(", seed ", 1)[0] if controls else ""
    notes = (f"Hidden are {words}.",) if words else ()
    if not tuned:
        return notes
    open_ = found.settings.get("blocked") is False
    return (*notes, UNBLOCKED if open_ else BLOCKED)


def _roar(found: RetrainedCheck) -> PartContent:
    beyond = found.result.by_method("beyond_random")
    rows = [
        WeightRow(sanitise_text(name), (score, beyond.get(name, NO_ESTIMATE)))
        for name, score in found.result.by_method("score").items()
        if is_known(score)
    ]
    whole = WeightRow("whole texts", (found.estimate("score_whole"), NO_ESTIMATE))
    return (), (PATTERN,), ("accuracy", "lost beyond random"), (whole, *rows)


def _copy(found: RetrainedCheck) -> PartContent:
    rows = [
        WeightRow(sanitise_text(name), (one,))
        for name, one in found.result.by_method("beyond_random").items()
        if is_known(one)
    ]
    note = (
        "A copy of the model was trained on with a random share of each text's words masked, to "
        "say what the model says of the whole text. On whole texts it predicts the same on "
        f"{format_estimate(found.estimate('same_prediction'))} of them, its outputs "
        f"{format_estimate(found.estimate('copy_tvd'))} (TVD) away."
    )
    return (), (note,), ("lost beyond random",), tuple(rows)


def _tried(one: WeightResult, measures: tuple[str, ...]) -> WeightRow:
    start = f", from {one.start}" if one.start else ""
    return WeightRow(
        f"{one.weight}{start}", tuple(one.found[name] for name in measures), one.reported
    )


PARTS = {
    "necessity": _necessity,
    "seeds": _seeds,
    "adversary": _adversary,
    "guide": _guide,
    "deception": _deception,
    "roar": _roar,
    "off_manifold": _copy,
}
