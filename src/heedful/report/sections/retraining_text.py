"""The section on models made anew: what each check found, in sentences and small tables."""

from collections.abc import Mapping
from dataclasses import dataclass

from heedful.core.records import Estimate
from heedful.report.measure_labels import QUESTIONS
from heedful.report.run_records import Records, visible
from heedful.report.sections.provenance import audited_of
from heedful.report.sections.retrained_models import Model, models_of, models_told
from heedful.report.sections.retraining import NOTHING, Found, Tried, known
from heedful.report.sections.roar import PATTERN, methods_of

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
class Row:
    """A row of a small table; `told` marks the one that the check's own figures are of."""

    name: str
    cells: tuple[Estimate, ...]
    told: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """One check in the section; `boxes` are sentences that stand side by side under headings."""

    name: str
    question: str
    answer: str
    why: str
    boxes: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()


@dataclass(frozen=True, slots=True)
class Retraining:
    """The whole section: its checks, then every model."""

    parts: tuple[Part, ...]
    models: tuple[Model, ...]
    sentence: str

    @property
    def cpu(self) -> float:
        """CPU seconds of all models together, as far as they are known."""
        return sum(one.cpu for one in self.models if one.cpu == one.cpu)


def section_of(records: Records, found: Mapping[str, Found]) -> Retraining | None:
    """What to tell; None where no such check was run."""
    if not found:
        return None
    tuned = audited_of(records.manifest) is not None
    models = models_of(records.manifest)
    parts = tuple(_part(one, models, tuned=tuned) for one in found.values())
    return Retraining(parts, models, models_told(records.manifest))


def shown(estimate: Estimate) -> str:
    """An estimate within a sentence, with a true minus sign.

    >>> shown(Estimate(-0.25, -0.5, 0.0, 9)), shown(NOTHING)
    ('−0.250 [−0.500, 0.000]', '–')
    """
    return str(estimate).replace("-", "\N{MINUS SIGN}") if known(estimate) else "–"


def _part(found: Found, models: tuple[Model, ...], *, tuned: bool) -> Part:
    result = found.result
    head = Part(found.name, QUESTIONS[found.name], result.answer, visible(result.why))
    if not any(map(known, result.estimates.values())):
        return head
    boxes, notes, columns, rows = PARTS[found.name](found)
    if found.name == "seeds" and tuned:
        notes = (*notes, SHARED)
    if found.name == "deception":
        notes = (*_hidden(found, models, tuned=tuned), *notes)
    return Part(head.name, head.question, head.answer, head.why, boxes, notes, columns, rows)


Pieces = tuple[tuple[tuple[str, str], ...], tuple[str, ...], tuple[str, ...], tuple[Row, ...]]


def _necessity(found: Found) -> Pieces:
    gain, swap = found.estimate("gain"), found.estimate("uniform_swap_tvd")
    margin = found.setting("margin")
    counts = "" if margin is None else f" A difference of less than {margin:g} counts as none."
    boxes = (
        (
            "Used as it is",
            "Uniform weights imposed on the model as it is move its output by "
            f"{shown(swap)} (TVD).",
        ),
        (
            "Needed when trained",
            "Trained with attention of its own, the same recipe gains "
            f"{shown(gain)} in accuracy over uniform weights.{counts}",
        ),
    )
    return boxes, (TWO_QUESTIONS,), (), ()


def _seeds(found: Found) -> Pieces:
    note = (
        "Distances are between the attention of the model under audit and that of models trained "
        f"with other seeds, each text's median over seeds: {shown(found.estimate('jsd_seeds'))} on "
        f"average. Shuffled, its own weights lie {shown(found.estimate('jsd_shuffled'))} away, "
        f"spread evenly {shown(found.estimate('jsd_uniform'))}, an adversary's "
        f"{shown(found.estimate('jsd_adversary'))}."
    )
    return (), (note,), (), ()


def _adversary(found: Found) -> Pieces:
    rows = [_tried(one, ("jsd", "tvd", "score")) for one in found.tried]
    base = Row("the model under audit", (NOTHING, NOTHING, found.estimate("score_base")))
    scales = REVERSED if found.settings.get("reverse") is True else SCALES
    return (), (scales,), ("JSD", "TVD", "accuracy"), (*rows, base)


def _guide(found: Found) -> Pieces:
    others = {"uniform": "uniform weights", "own": "weights it learns", "adversary": "an adversary"}
    told = ", ".join(
        f"{shown(found.estimate(f'base_minus_{one}'))} over {words}"
        for one, words in others.items()
        if known(found.estimate(f"base_minus_{one}"))
    )
    note = f"Led by the attention under audit, the model without context gains {told} in accuracy."
    return (), (note if told else "",), (), ()


def _deception(found: Found) -> Pieces:
    note = (
        "The control: a model trained and tested without the words reaches "
        f"{shown(found.estimate('score_without_words'))}, a loss of "
        f"{shown(found.estimate('words_worth'))}. Only where that loses are the words decisive, "
        "and only then does hiding them show anything."
    )
    before = Row("before", (found.estimate("mass_before"), found.estimate("score_before")))
    rows = [_tried(one, ("mass_after", "score_after")) for one in found.tried]
    without = Row("without the words", (NOTHING, found.estimate("score_without_words")))
    columns = ("share of attention", "accuracy")
    return (), (note,), columns, (before, *rows, without)


def _hidden(found: Found, models: tuple[Model, ...], *, tuned: bool) -> tuple[str, ...]:
    """Which words were hidden, as the control that does without them is named, and how."""
    controls = [one.name for one in models if one.name.startswith(WITHOUT)]
    words = controls[0].removeprefix(WITHOUT).rsplit(", seed ", 1)[0] if controls else ""
    told = (f"Hidden are {words}.",) if words else ()
    if not tuned:
        return told
    open_ = found.settings.get("blocked") is False
    return (*told, UNBLOCKED if open_ else BLOCKED)


def _roar(found: Found) -> Pieces:
    rows = [
        Row(one, (found.estimate(f"score_{one}"), found.estimate(f"beyond_random_{one}")))
        for one in methods_of(found)
    ]
    whole = Row("whole texts", (found.estimate("score_whole"), NOTHING))
    return (), (PATTERN,), ("accuracy", "lost beyond random"), (whole, *rows)


def _copy(found: Found) -> Pieces:
    rows = [
        Row(name.removeprefix("beyond_random_"), (one,))
        for name, one in found.result.estimates.items()
        if name.startswith("beyond_random_") and known(one)
    ]
    note = (
        "A copy of the model was trained on with a random share of each text's words masked, to "
        "say what the model says of the whole text. On whole texts it predicts the same on "
        f"{shown(found.estimate('same_prediction'))} of them, its outputs "
        f"{shown(found.estimate('copy_tvd'))} (TVD) away."
    )
    return (), (note,), ("lost beyond random",), tuple(rows)


def _tried(one: Tried, measures: tuple[str, ...]) -> Row:
    start = f", from {one.start}" if one.start else ""
    return Row(f"{one.weight}{start}", tuple(one.found[name] for name in measures), one.told)


PARTS = {
    "necessity": _necessity,
    "seeds": _seeds,
    "adversary": _adversary,
    "guide": _guide,
    "deception": _deception,
    "roar": _roar,
    "off_manifold": _copy,
}
