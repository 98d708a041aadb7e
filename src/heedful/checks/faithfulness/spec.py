"""What `faithfulness` asks, measures and shows; also for `off_manifold`."""

from collections.abc import Iterator
from functools import partial

from heedful.checks.spec import (
    CONTROL_METHODS,
    RANK,
    CheckSpec,
    Measure,
    defined_by_method,
    describe_only,
)
from heedful.core.records import CheckResult, Estimate
from heedful.results.document import FigureData, FigurePanel, FigureRow
from heedful.results.figure_data import drop_empty, ends, interval_rows, rounded_span
from heedful.results.run_records import RunRecords

NAME = "faithfulness"
WAYS = ("deletion", "masking", "infilled")
PANELS = {
    "beyond_random": "lost beyond random removal",
    "comprehensiveness": "lost without the top words",
    "sufficiency": "lost with the top words alone",
}
OFF, NEARER = "off_distribution_", "whole texts with nearer neighbours"
WORST = "worst"  # comprehensiveness of the order from its end
LEAST = 0.05  # of the axis of the figure
LEVEL, HALF = 0.05, 0.5
SIMILAR = 0.8  # a copy that predicts the same on fewer texts says little about the model
NOTHING = "No text has two words, so there is nothing to rank."
NOT_MEASURED = "Whether this separates faithful from inert attention has not been measured."
_by_method = partial(Measure, by=("method",))
# the setting is the way of removing words, where not the first
_by_way = partial(Measure, by=("method", "setting"))

REMOVAL_MEASURES = (  # of every method, by each way of removing words
    _by_way(
        "comprehensiveness", "probability lost without the top words of {method}", "up", range=RANK
    ),
    _by_way(
        "sufficiency", "probability lost with only the top words of {method}", "down", range=RANK
    ),
    _by_way("beyond_random", "lost beyond random removal: {method}", "up", range=RANK),
    _by_way("diagnosticity", "random orders that {method} beats", "up"),
    _by_way("worst", "lost in the reverse order of {method}", role="control", range=RANK),
    _by_way("flip", "words to remove until the decision flips, by {method}", "down"),
    _by_way("infidelity", "squared distance of scores and losses: {method}", "down"),
    _by_way("infidelity_scaled", "the same, scores of {method} optimally scaled", "down"),
    _by_way(
        "normalised_comprehensiveness", "share of the text’s total effect lost: {method}", "up"
    ),
    _by_way("normalised_sufficiency", "share of the text’s total effect kept: {method}", "up"),
    _by_way("violation", "words whose sign contradicts their effect: {method}", "down"),
)
P_BEYOND_RANDOM = _by_method(
    "p_beyond_random", "p-value of “no more than random removal”, corrected: {method}", kind="p"
)
SOFT_MEASURES = (
    _by_method("soft_sufficiency", "effect kept, elements zeroed where {method} scores low", "up"),
    _by_method(
        "soft_comprehensiveness", "effect lost, elements zeroed where {method} scores high", "up"
    ),
    _by_method(
        "soft_beyond_random", "lost beyond the same scores shuffled: {method}", "up", range=RANK
    ),
    _by_method("sensitivity", "change of scores of {method} with the vectors", "down"),
)
NATURALNESS_MEASURES = (
    Measure(f"{OFF}whole", f"{NEARER} than the text itself", role="control"),
    *(Measure(f"{OFF}{way}", f"{NEARER} than these: {way}", by=("setting",)) for way in WAYS),
    Measure("not_infilled", "removed words that the language model could not replace"),
    *(
        Measure(
            f"log_perplexity_{way}",
            f"log-perplexity of a token under the language model: {way}",
            range=(0.0, 10.0),
        )
        for way in ("whole", *WAYS)
    ),
)


def describe_faithfulness(result: CheckResult) -> str:
    """How much removing attention's top words changes the output beyond chance."""
    verbs = {"deleting": "deletion", "masking": "masking"}  # the first way that was measured counts
    known = (verb for verb, way in verbs.items() if f"{OFF}{way}" in result.estimates)
    doing = next(known, "removing")
    found = _describe_methods(result, doing.capitalize(), f"of the probability than {doing}")
    return f"{found}{_describe_off_distribution(result)}".strip() if found else NOTHING


def describe_masked_copy(result: CheckResult) -> str:
    """The same for a copy trained on masked texts, and how similar the copy is."""
    similar = result.estimates.get("same_prediction")
    than = "of the copy's probability than masking"
    found = _describe_methods(result, "In the copy, masking", than)
    if similar is None or not found:
        return NOTHING
    first = (
        "A copy of the model trained on texts with masked words makes the same prediction as the "
        f"model on {similar.value:.1%} of whole texts"
    )
    first += "" if similar.low >= SIMILAR else ", too few for a good copy"
    return f"{first}. {found}{NOT_MEASURED}"


def _describe_methods(result: CheckResult, doing: str, than: str) -> str:
    beyond = defined_by_method(result, "beyond_random")
    tested = result.by_method("p_beyond_random").get("attention")
    found = ""
    if own := beyond.pop("attention", None):
        found = (
            f"{doing} the words that attention ranks highest takes {own} more {than} as many "
            f"random words: {_compare_with_chance(own, tested)}. "
        )
    if beyond:
        best = max(beyond, key=lambda name: beyond[name].value)
        found += f"Of the other methods {best} has the largest effect, {beyond[best]}. "
    return found


def _compare_with_chance(own: Estimate, tested: Estimate | None) -> str:
    """In words, by the p-value that is corrected for the number of methods."""
    p = f" (p {tested.value:.2g}, corrected for the number of methods)" if tested else ""
    if tested and tested.value <= LEVEL:
        return f"beyond chance{p}"
    return f"less than chance{p}" if own.high < 0 else f"not beyond chance{p}"


def _describe_off_distribution(result: CheckResult) -> str:
    """How far texts without the words are from whole texts, by each way; empty where unknown."""
    found = {way: one for way in WAYS if (one := result.of(f"{OFF}{way}")).n}
    if not found:
        return ""
    each = " and ".join(f"{one.value:.0%} ({way})" for way, one in found.items())
    farthest = max(found.values(), key=lambda one: one.value)
    return (
        f"Texts without them are farther from whole texts than {each} of whole texts are from each "
        f"other, where 50% is usual: {_compare_with_whole(farthest)}. "
    )


def _compare_with_whole(most: Estimate) -> str:
    if most.low > HALF:
        return "off distribution for the model, which may cause part of the loss"
    return "no farther than whole texts" if most.high < HALF else "about as far as whole texts"


def build_figures(records: RunRecords) -> list[FigureData]:
    """Methods with intervals, by every way to remove words."""
    ways = records.settings(NAME).get("ways")
    first = ways[0] if isinstance(ways, list) and ways and ways[0] in WAYS else WAYS[0]
    title = "The words a method ranks highest"
    return removal_figures(records, check=NAME, title=title, way=first)


def removal_figures(records: RunRecords, *, check: str, title: str, way: str) -> list[FigureData]:
    """A figure of the removals of a check; `way` is that of the rows without a setting."""
    result = records.verdict.checks[check]
    settings = {row.setting for row in result.rows(WORST) if row.setting and row.predicted is None}
    ways: dict[str, dict[str, str]] = {way: {}}
    ways |= {setting: {"setting": setting} for setting in sorted(settings)}
    rows = interval_rows(
        pair
        for name, keys in ways.items()
        for measure in PANELS
        for pair in _points(result, measure, name, keys)
    )
    span, drawn = rounded_span([0.0, LEAST, *ends(rows)]), {row["panel"] for row in rows}
    figure = FigureData(
        check,
        "intervals",
        title,
        "Probability of the predicted class that is lost, mean over texts and shares of the words, "
        "with intervals. Only what lies beyond random removal is evidence: any removal harms. "
        "Hollow: controls, and the words that a method ranks lowest.",
        rows=rows,
        panels=[FigurePanel(panel, span) for panel in PANELS.values() if panel in drawn],
    )
    return drop_empty([figure])


def _points(
    result: CheckResult, measure: str, way: str, keys: dict[str, str]
) -> Iterator[tuple[Estimate, FigureRow]]:
    """Every method and control in a panel, and the reversed order of each method."""
    for method in (*result.by_method("beyond_random"), *CONTROL_METHODS):
        row = {"panel": PANELS[measure], "group": method, "class": way}
        role = "control" if method in CONTROL_METHODS else "method"
        yield result.of(measure, method=method, **keys), row | {"role": role}
        if measure == "comprehensiveness":
            worst = result.of(WORST, method=method, **keys)
            yield worst, row | {"role": "its order reversed"}


SPEC = CheckSpec(
    NAME,
    "Does removing (or keeping only) the words a method ranks highest change the output more than "
    "random words do?",
    (*REMOVAL_MEASURES, *SOFT_MEASURES, *NATURALNESS_MEASURES, P_BEYOND_RANDOM),
    "heedful.checks.faithfulness.check:Faithfulness",
    claim="ranks",
    source="ERASER; DeYoung et al., 2020",
    title="Removing the top-ranked words",
    leading=("beyond_random", "comprehensiveness"),
    rules=describe_only(NAME, describe_faithfulness),
    by_default=False,
    takes_methods="always",
    figures=build_figures,
)
