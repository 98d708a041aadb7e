"""How often a check is right where the truth is known, in words."""

from collections.abc import Mapping

from heedful.core.records import CheckResult
from heedful.report.run_records import visible

UNKNOWN = "power not measured"


def power_told(result: CheckResult, claim: str) -> str:
    """A check's power on a claim.

    >>> power_told(CheckResult("undecided", "", {}), "ranks")
    'power not measured'
    """
    known: Mapping[str, object] = result.power.get(claim, {})
    return visible(str(known.get("told", UNKNOWN)))


def powers_told(result: CheckResult) -> str:
    """Its power on every claim that it bears on, in one line."""
    if not result.power:
        return UNKNOWN
    return "; ".join(f"{claim}: {power_told(result, claim)}" for claim in result.power)
