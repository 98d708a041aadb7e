"""heedful: does attention explain this model's predictions, and if not, what does?

Names are loaded on first use, so that importing heedful costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heedful.auditing.plan import Plan as Plan
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
    from heedful.data.resolve import read as read
    from heedful.models.base import Subject as Subject
    from heedful.reproducing.api import Reproduction as Reproduction
    from heedful.reproducing.api import reproduce as reproduce
    from heedful.runner.api import audit as audit
    from heedful.runner.api import explain as explain
    from heedful.runner.api import explain_all as explain_all
    from heedful.runner.api import load as load
    from heedful.runner.compare import Comparison as Comparison
    from heedful.runner.compare import compare as compare
    from heedful.runner.run import Run as Run
    from heedful.training.diffmask import fit_diffmask as fit_diffmask
    from heedful.training.finetune import finetune as finetune
    from heedful.training.fit import fit as fit
    from heedful.training.masking import Masking as Masking
    from heedful.training.recipe import Recipe as Recipe
    from heedful.training.tuning import FineTuning as FineTuning

_HOMES = {
    "heedful.auditing.plan": ("Plan",),
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
    "heedful.data.resolve": ("read",),
    "heedful.models.base": ("Subject",),
    "heedful.reproducing.api": ("Reproduction", "reproduce"),
    "heedful.runner.api": ("audit", "explain", "explain_all", "load"),
    "heedful.runner.compare": ("Comparison", "compare"),
    "heedful.runner.run": ("Run",),
    "heedful.training.diffmask": ("fit_diffmask",),
    "heedful.training.finetune": ("finetune",),
    "heedful.training.tuning": ("FineTuning",),
    "heedful.training.fit": ("fit",),
    "heedful.training.masking": ("Masking",),
    "heedful.training.recipe": ("Recipe",),
}
_WHERE = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_WHERE, key=str.casefold)  # noqa: PLE0605 - a list, made from the table above


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'heedful' has no attribute {name!r}")
    value = getattr(import_module(_WHERE[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__]
