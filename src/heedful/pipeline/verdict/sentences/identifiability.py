"""What is said of what attention cannot matter for, and of whose states it looks at."""

from collections.abc import Mapping

from heedful.core.records import Estimate

UNKNOWN = Estimate(float("nan"), float("nan"), float("nan"), 0)


def describe_identifiability(estimates: Mapping[str, Estimate]) -> str:
    """Both questions in a sentence each; why one has no answer stands with what is missing."""
    share, identified, own = (
        estimates.get(name, UNKNOWN)
        for name in ("no_effect_share", "token_identified", "own_share")
    )
    told = []
    if share.n:
        told.append(
            f"Of the weights under audit a share of {share} has no effect whatever on what their "
            f"heads give out, at {estimates['keys_per_dimension']} keys for each dimension of a "
            "head: the more keys, the larger it must be."
        )
    if identified.n:
        told.append(
            f"Of the states that they look at, {identified} still point to their own word "
            f"(by chance {estimates['identified_by_chance'].value:.3f})."
        )
    if own.n:
        told.append(f"A word makes up {own} of its own state.")
    return " ".join(told) or "Nothing of this could be measured for this model."
