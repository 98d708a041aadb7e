"""Records of runs that measured the influence of words, with places given by hand."""

from dataclasses import replace
from math import nan

from heedful.checks.influence.names import (
    BEST_SET,
    CROSS_FITTED,
    HALF,
    MASKING,
    MEAN,
    NEAR_FULL,
    SHUFFLED,
)
from heedful.core.records import (
    CLAIMS,
    BetterMethod,
    CheckResult,
    ClaimResult,
    Degree,
    Estimate,
    EstimateRow,
    Flips,
    MethodEstimate,
    MissingMeasure,
    ModelScore,
    TextCounts,
)
from support.records import records

N = 200
CLASSES = ("neg", "pos")
METHODS = {  # by name: kind, order, top_set, top_word, flips
    "attention": ("attention", 0.64, 1.15, 0.67, 0.33),
    "rollout": ("attention", 0.41, 0.8, 0.3, 0.2),
    "integrated_gradients": ("saliency", 0.91, 1.2, 0.87, 0.36),
    "leave_one_out": ("saliency", 0.85, 1.25, 0.83, 0.47),
}
REASON = "Two readings disagree: order 0.640, but where words are masked, order is 0.450."


def near(value, n=N):
    """An estimate with a short interval."""
    return Estimate(value, value - 0.02, value + 0.02, n)


FLIPS = Flips(
    near(0.33),
    near(0.11),
    Estimate(0.22, 0.19, 0.26, N),
    near(0.79, 80),
    MethodEstimate("integrated_gradients", near(0.36, 40)),
)
SCORE = ModelScore(near(0.76), 0.51, {"neg": 98, "pos": 102})


def method_rows(methods=None):
    """The places and flips of every method, overall and of attention by class."""
    for name, (_, order, top_set, top_word, flips) in (methods or METHODS).items():
        for measure, value, setting in (
            ("order", order, None),
            ("order", order, MEAN),
            ("top_set", top_set, None),
            ("top_word", top_word, None),
            ("top_word", top_word, CROSS_FITTED),
            ("flip_top", flips, None),
        ):
            yield EstimateRow(measure, near(value), name, setting=setting)
        for label in CLASSES:
            yield EstimateRow("flip_top", near(flips), name, predicted=label)
    yield EstimateRow("flip_top", near(0.11), "random")
    yield EstimateRow("flip_top", near(0.79, 80), setting=BEST_SET)


def control_rows(shuffled=0.0):
    """The controls, the second readings, and the texts in which attention has no effect."""
    for measure in ("order", "top_set", "top_word"):
        yield EstimateRow(measure, near(0.85), setting=HALF)
        yield EstimateRow(measure, near(shuffled), "attention", setting=SHUFFLED)
    yield EstimateRow("order", near(0.85), setting=f"{HALF}, {MEAN}")
    yield EstimateRow("order", near(shuffled), "attention", setting=f"{SHUFFLED}, {MEAN}")
    yield EstimateRow("order", near(0.45, 80), "attention", setting=MASKING)
    yield EstimateRow("order", near(0.56, 80), "attention", setting=NEAR_FULL)
    yield EstimateRow("share_below", near(0.07), setting="0.05")


def stratum_rows(p=(0.001, 0.9)):
    """Two parts of the texts by class, with p-values above and below of both."""
    for name, order, above in zip(CLASSES, (0.7, 0.3), (p, p[::-1]), strict=True):
        part = f"class: texts predicted {name}"
        yield EstimateRow("share", near(0.5), slice=part)
        yield EstimateRow("order", near(order), "attention", slice=part)
        yield EstimateRow("leverage_top", near(0.34), slice=part)
        for side, value in zip(("above", "below"), above, strict=True):
            tested = Estimate(value, nan, nan, 100)
            yield EstimateRow(f"p_{side}", tested, setting="order", slice=part)
    yield EstimateRow("order", near(0.6), "attention", slice="Predicted class: neg")


def influence_result(*, methods=None, shuffled=0.0, p=(0.9, 0.9), reliability=0.84):
    """The result of the check."""
    rows = (*method_rows(methods), *control_rows(shuffled), *stratum_rows(p))
    estimates = {
        "reliability": near(reliability),
        "leverage_top": near(0.34),
        "top_set_gap": near(0.16),
    }
    lost = MissingMeasure("order", "this model has one attention", "alti")
    return CheckResult("undecided", "The places do not decide.", estimates, rows, missing=(lost,))


def influenced(*, manifest_changes=None, plan="epsilon = 0.05\n", result=None, **changes):
    """Records of a run with places; the other checks are those of `support.records`."""
    claims = {name: ClaimResult("not tested", "Not looked at.") for name in CLAIMS}
    claims |= {
        "ranks": ClaimResult("undecided", REASON, ("influence",)),
        "used": ClaimResult("supported", "Output moves.", ("influence",)),
        "exclusive": ClaimResult("refuted", "A distant attention does.", ("adversarial",)),
    }
    kinds = {name: {"kind": kind} for name, (kind, *_) in METHODS.items()}
    one = records(manifest_changes={"methods": kinds, **(manifest_changes or {})})
    found = result or influence_result()
    given = {
        "answer": "undecided",
        "why": REASON,
        "degree": Degree("order", near(0.64)),
        "instead": BetterMethod("integrated_gradients", near(0.91)),
        "claims": claims,
        "checks": {"influence": found, **one.verdict.checks},
        "places": {
            **{
                name: found.of(name, method="attention")
                for name in ("order", "top_set", "top_word")
            },
            "reliability": found.of("reliability"),
        },
        "flips": FLIPS,
        "score": SCORE,
        "texts": TextCounts(N, 190, 7),
    }
    return replace(
        one,
        plan=f"{plan}[settings.influence]\norders = 4\n",
        verdict=replace(one.verdict, **given | changes),
    )
