"""What `off_manifold` asks, measures and describes."""

from functools import partial

from heedful.checks.faithfulness.faithfulness.figures import removal_figures
from heedful.checks.faithfulness.faithfulness.rules import describe_masked_copy
from heedful.checks.faithfulness.faithfulness.spec import P_BEYOND_RANDOM, REMOVAL_MEASURES
from heedful.checks.retraining.off_manifold.sections import build_sections
from heedful.checks.spec import CheckSpec, Measure, describe_only

NAME = "off_manifold"

SPEC = CheckSpec(
    NAME,
    "Do deletion results hold for a copy trained on texts with masked words?",
    (
        Measure("same_prediction", "whole texts on which copy and model predict the same", "up"),
        Measure("copy_tvd", "change of output from the model to its copy, whole texts", "down"),
        *REMOVAL_MEASURES,
        P_BEYOND_RANDOM,
    ),
    "heedful.checks.retraining.off_manifold.check:OffManifold",
    claim="ranks",
    title="On a copy trained with masked words",
    leading=("beyond_random", "comprehensiveness", "same_prediction"),
    rules=describe_only(NAME, describe_masked_copy),
    quick={"epochs": 8, "patience": 3},
    retrains=True,
    figures=partial(
        removal_figures,
        check=NAME,
        title="The same for a copy trained on masked texts",
        way="masking, in the copy",
    ),
    sections=build_sections,
)
