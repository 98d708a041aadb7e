"""heedful: does attention explain this model's predictions, and if not, what does?

Names are loaded on first use, so that importing heedful costs next to nothing.
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heedful import planted as planted
    from heedful.api.comparison import Comparison as Comparison
    from heedful.api.comparison import compare as compare
    from heedful.api.functions import audit as audit
    from heedful.api.functions import explain as explain
    from heedful.api.functions import explain_all as explain_all
    from heedful.api.functions import load as load
    from heedful.api.run import Run as Run
    from heedful.core.errors import AttentionUnavailable as AttentionUnavailable
    from heedful.core.errors import ConfigError as ConfigError
    from heedful.core.errors import DataError as DataError
    from heedful.core.errors import HeedfulError as HeedfulError
    from heedful.core.errors import ModelError as ModelError
    from heedful.core.errors import NotApplicable as NotApplicable
    from heedful.core.errors import RunError as RunError
    from heedful.core.errors import ShapeError as ShapeError
    from heedful.core.errors import UnknownName as UnknownName
    from heedful.core.records import Estimate as Estimate
    from heedful.core.records import Verdict as Verdict
    from heedful.data.read import read as read
    from heedful.models.protocols import Subject as Subject
    from heedful.pipeline.plan.plan import Plan as Plan
    from heedful.studies.reproduce import Reproduction as Reproduction
    from heedful.studies.reproduce import reproduce as reproduce
    from heedful.training.fit import finetune as finetune
    from heedful.training.fit import fit as fit
    from heedful.training.fit_diffmask import Masking as Masking
    from heedful.training.fit_diffmask import fit_diffmask as fit_diffmask
    from heedful.training.recipe import FineTuning as FineTuning
    from heedful.training.recipe import Recipe as Recipe

_HOMES = {
    "heedful.pipeline.plan.plan": ("Plan",),
    "heedful.core.errors": (
        "AttentionUnavailable",
        "ConfigError",
        "DataError",
        "HeedfulError",
        "ModelError",
        "NotApplicable",
        "RunError",
        "ShapeError",
        "UnknownName",
    ),
    "heedful.core.records": ("Estimate", "Verdict"),
    "heedful.data.read": ("read",),
    "heedful.models.protocols": ("Subject",),
    "heedful.studies.reproduce": ("Reproduction", "reproduce"),
    "heedful.api.functions": ("audit", "explain", "explain_all", "load"),
    "heedful.api.comparison": ("Comparison", "compare"),
    "heedful.api.run": ("Run",),
    "heedful.training.fit_diffmask": ("Masking", "fit_diffmask"),
    "heedful.training.fit": ("finetune", "fit"),
    "heedful.training.recipe": ("FineTuning", "Recipe"),
}
_ROOMS = ("planted",)  # public packages
_WHERE = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_WHERE, key=str.casefold)  # noqa: PLE0605 - a list, made from the table above


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return version("heedful")
    if name in _ROOMS:
        return import_module(f"heedful.{name}")
    if name not in _WHERE:
        raise AttributeError(f"module 'heedful' has no attribute {name!r}")
    value = getattr(import_module(_WHERE[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, *_ROOMS]
