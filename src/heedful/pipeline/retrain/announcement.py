"""What is said before models are made anew: how many, and what that may take."""

from collections.abc import Mapping, Sequence
from typing import Any

from heedful.training.variants.variant_store import VariantStore
from heedful.training.variants.variants import GuidedVariant, Variant


def describe_retraining_cost(
    variant_store: VariantStore, todo: Sequence[Variant], there: int, workers: int
) -> str:
    """What is about to happen."""
    fixed = variant_store.tuning.get("epochs")
    until = "by the recipe's schedule" if fixed else "until its dev score stops rising"
    words = (
        one for one in todo if isinstance(one, GuidedVariant) or not fixed
    )  # these have no schedule
    most = sum(one.pace.epochs for one in words)
    most += sum(fixed for one in todo if fixed and not isinstance(one, GuidedVariant))
    message = f"{len(todo)} models are made anew"
    message += f" ({there} are there already)" if there else ""
    at_once = min(workers, len(todo))
    message += f", each {until}, {most} epochs at the most; {at_once} at a time, kept in "
    return f"{message}{variant_store.folder}."


def describe_epoch_cost(history: Mapping[str, Any]) -> str:
    """What an epoch of the base model took, where it says so."""
    seconds, scores = history.get("cpu_seconds"), history.get("dev_scores")
    if not seconds or not scores:
        return ""
    return f" An epoch of this model took about {seconds / len(scores):.2g} CPU seconds."
